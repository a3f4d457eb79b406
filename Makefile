# The short names of what people do here.  CMake does the work; see docs/testing.md.

BUILD := build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
KILLS ?= 1000
# Many tests wait for another program, a clock or a network for part of their time.
AT_ONCE = $(shell expr $(JOBS) \* 2)
CTEST = ctest --output-on-failure --output-junit tests.xml -j $(AT_ONCE)
RESULTS := build-asan/tests.xml build-tsan/tests.xml $(BUILD)/tests.xml

# Where the build files are made anew, what is built is the affair of ninja.
build-%/build.ninja:
	cmake --preset $* $(if $(VERBOSE),,>/dev/null)

.PHONY: build help demo demo-serve on-call quick check suite storm faults fresh check-gpu check-arm64 lint bench fuzz asan tsan install dist image check-dist clean deps onnxruntime

build: ## build the program and its libraries into build/
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release
	cmake --build $(BUILD) -j $(JOBS)

demo: deps ## build what it needs, record an example program, print the report
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release
	cmake --build $(BUILD) -j $(JOBS) --target demo
	@sh tools/demo.sh $(BUILD)
	@sh tools/demo-share.sh $(BUILD)
	@sh tools/demo.sh $(BUILD) next

demo-serve: deps ## serve a model, ask it with curl, print what each request waited for
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release
	cmake --build $(BUILD) -j $(JOBS) --target demo-serve
	@sh tools/demo-serve.sh $(BUILD)

on-call: build ## try docs/howto/on-call.md on the simulated driver, until Enter is pressed
	@python3 tools/on_call.py $(BUILD) --stay

quick: lint ## before each commit: lint, and the tests that take less than a second or two
	$(CTEST) --no-tests=error --test-dir $(BUILD) -LE 'gpu|lint|slow'

check: ## every test that needs no GPU, also with the sanitizers
	@sh tools/deps.sh check
	@sh tools/onnxruntime.sh $(BUILD) || true # without it, tests of models are skipped
	@rm -f $(RESULTS)
	@$(MAKE) --no-print-directory -k asan tsan suite; status=$$?; sh tools/summary.sh $(RESULTS) && exit $$status

suite: build
	$(CTEST) --no-tests=error --test-dir $(BUILD) -LE 'gpu|lint'

check-arm64: ## build for arm64; run unit, golden, cli and hostile tests under qemu-user (root)
	@sh tools/arm64.sh

storm: build ## kill programs and weir record at random moments, KILLS times (1000)
	sh tests/need.sh python3 python3 tests/storm/storm.py $(BUILD) $(KILLS)
	sh tests/need.sh python3 python3 tests/storm/sched.py $(BUILD) $(KILLS)

faults: build ## each system call of hook and recorder failing in turn, and a kill at each
	@for where in hook joined killed replaced record kill; do sh tests/faults/sweep.sh $(BUILD) $$where || exit 1; done

fresh: ## what a new user does, in a minimal Debian made for it (root)
	@sh tools/fresh.sh build-fresh

check-gpu: build ## the tests that need a GPU
	$(CTEST) --no-tests=error --test-dir $(BUILD) -L gpu -j 1
	@sh tools/summary.sh $(BUILD)/tests.xml

lint: build ## format, layers, symbols, manual: the rules that a tool can check
	@sh tools/deps.sh lint
	@sh tools/lint.sh $(BUILD)
	$(CTEST) --no-tests=error --test-dir $(BUILD) -L lint

bench: build ## measure what a recorded call and a prediction cost
	@sh tools/bench.sh $(BUILD)

fuzz: ## run each fuzz target for FUZZ_SECONDS (60)
	@sh tools/deps.sh fuzz
	@$(MAKE) --no-print-directory build-fuzz/build.ninja
	cmake --build build-fuzz --target fuzz -j $(JOBS)
	@sh tools/fuzz.sh build-fuzz $(FUZZ_SECONDS)

# Undefined behaviour traps, which takes half the time of a message, and ASan says where.  Not the controls, which try
# the tests' own scripts.
asan: build-asan/build.ninja ## unit, golden, replayed fuzz tests and the life of a server with ASan and UBSan
	cmake --build build-asan -j $(JOBS) --target weir tests/unit/all tests/golden/all tests/fuzz/all
	ASAN_OPTIONS=handle_sigill=1 $(CTEST) --no-tests=error --test-dir build-asan -L 'unit|golden|fuzz|serve' -E '_notices_a_|_can_fail|golden.alone'

tsan: build-tsan/build.ninja ## the tests that use threads with ThreadSanitizer
	cmake --build build-tsan -j $(JOBS) --target threads
	$(CTEST) --no-tests=ignore --test-dir build-tsan -L threads

install: build ## install into PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(abspath $(PREFIX))

dist: ## build the portable trees, dist/weir-VERSION-linux-x86_64.tar.zst and -aarch64
	@sh tools/dist.sh x86_64
	@sh tools/dist.sh aarch64

packages: dist ## build packages of that tree: .deb, .rpm, a wheel for pip, SHA256SUMS
	@sh tools/packages.sh

image: dist ## build the image of the portable tree, dist/weir-VERSION-linux-x86_64.oci.tar
	@sh deploy/container/image.sh

check-dist: build packages ## try what was made in Debian 11 to 13 (root), build all a second time, elsewhere, and compare
	@sh tools/deps.sh check-dist
	$(CTEST) --no-tests=error --test-dir $(BUILD) -L dist
	@sh tests/dist/same.sh

onnxruntime: ## fetch ONNX Runtime with npm, for models of weir serve
	@sh tools/onnxruntime.sh $(BUILD)

deps:
	@sh tools/deps.sh build

clean: ## remove what was built
	cmake -E rm -rf build build-debug build-asan build-tsan build-fuzz build-fresh build-arm64 build-dist-x86_64 build-dist-aarch64

help: ## print this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile
