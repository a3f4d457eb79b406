/* A macro for each of one to eight arguments, in turn. */
#pragma once

#define EACH_ARG(macro, ...) EACH_OF(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(macro, __VA_ARGS__)

#define EACH_OF(a, b, c, d, e, f, g, h, n, ...) EACH_##n

#define EACH_1(macro, a)      macro(a)
#define EACH_2(macro, a, ...) macro(a) EACH_1(macro, __VA_ARGS__)
#define EACH_3(macro, a, ...) macro(a) EACH_2(macro, __VA_ARGS__)
#define EACH_4(macro, a, ...) macro(a) EACH_3(macro, __VA_ARGS__)
#define EACH_5(macro, a, ...) macro(a) EACH_4(macro, __VA_ARGS__)
#define EACH_6(macro, a, ...) macro(a) EACH_5(macro, __VA_ARGS__)
#define EACH_7(macro, a, ...) macro(a) EACH_6(macro, __VA_ARGS__)
#define EACH_8(macro, a, ...) macro(a) EACH_7(macro, __VA_ARGS__)
