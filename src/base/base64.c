/* Three bytes are four digits of six bits each. */
#include "base/base64.h"

#include <errno.h>

void base64_put(struct buf *b, const void *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *v = bytes;
	char *at = buf_more(b, (n + 2) / 3 * 4);
	b->n += (n + 2) / 3 * 4;
	for (size_t i = 0; i < n; i += 3) {
		const uint32_t three = (uint32_t)v[i] << 16 |
				       (i + 1 < n ? (uint32_t)v[i + 1] << 8 : 0) |
				       (i + 2 < n ? v[i + 2] : 0);
		*at++ = digits[three >> 18];
		*at++ = digits[three >> 12 & 63];
		*at++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
		*at++ = i + 2 < n ? digits[three & 63] : '=';
	}
}

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_read(struct slice text, char *to, size_t *ret_bytes)
{
	uint32_t bits = 0;
	size_t n = 0;
	if (text.n && text.n % 4 == 0 && text.at[text.n - 1] == '=')
		text.n -= text.at[text.n - 2] == '=' ? 2 : 1;
	for (size_t i = 0; i < text.n; i++) {
		const int digit = digit_of(text.at[i]);
		if (digit < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)digit;
		if (i % 4)
			to[n++] = (char)(bits >> (6 - i % 4 * 2));
	}
	if (text.n % 4 == 1)
		return -EINVAL;
	*ret_bytes = n;
	return 0;
}
