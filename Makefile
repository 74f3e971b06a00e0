# Cohort: `make demo` runs the main job, `make test` runs all tests.

GO ?= go
BASE ?= HEAD~1
# Version of the linter that .ci/run installs.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: test-memory test-cells libcohort libcohort-full test-c test-python wheel peers build demo test test-race test-container test-isa test-arm64 lint generate fuzz prototypes bench bench-compare mutants mca demo-network test-network test-page

build:
	$(GO) build -o bin/cohort ./cmd/cohort

demo: build
	./bin/cohort run --data builtin:s1-like --k 15 --epsilon 1 --bounds 0:1000000

.PHONY: release playground test-playground

# Binaries for six platforms with checksums and what they are made of, in dist.
release:
	GO=$(GO) ./scripts/release.sh

# Cohort in one HTML page that needs no network: bin/playground.html.
playground:
	GO=$(GO) ./scripts/playground.sh

# The page in headless Chromium, where there is one.
test-playground:
	GO=$(GO) ./scripts/playground.sh test

# The C library: bin/libcohort.so, bin/libcohort.a, bin/cohort.h (needs gcc).
libcohort:
	GO=$(GO) ./scripts/libcohort.sh

# The same with the methods under homomorphic encryption.
libcohort-full:
	GO=$(GO) ./scripts/libcohort.sh -tags full

# Programs in C and C++ that use the library (needs gcc and g++).
test-c: libcohort
	GO=$(GO) ./scripts/test-c.sh

# The Python package as a wheel in bin (needs gcc, python3-build, python3-setuptools, python3-wheel).
wheel: libcohort
	./scripts/wheel.sh

# The Python package, and the wheel in a fresh environment (needs python3-sklearn,
# python3-pandas, python3-pytest and python3-venv, too).
test-python: wheel
	./scripts/test-python.sh
# A coordinator and three parties, each a process of its own, over TLS: ends with the
# centroids of one process.
demo-network: build
	./scripts/demo-network.sh

# Studies under faults: processes that are killed, parties that vanish, harmful networks.
test-network: demo-network
	COHORT_NETWORK=1 GO=$(GO) $(GO) run ./scripts/gotest -timeout 10m -count=1 ./engine/study/...

# A coordinator and three parties in containers, and the systemd unit, where podman, podman-compose and
# systemd-analyze are (as root).
test-container:
	GO=$(GO) ./scripts/test-container.sh

# The pages of a live study in headless Chromium, where there is one.
test-page: build
	./scripts/test-page.sh

test:
	GO=$(GO) $(GO) run ./scripts/gotest -timeout 20m ./...
	cd engine/privacy/_google && $(GO) test ./...

# A set of RECORDS records (10^7 by default) in a file of panels, within bounded memory.
test-memory: build
	./scripts/beyond-memory.sh

# A round of ckks in each cell of `cohort bench he`, against the bound of its error; the small ones are in `make test`.
test-cells:
	COHORT_CELLS=1 $(GO) test -count=1 -timeout 30m -run TestErrorOfEachCell ./engine/method/ckks

# The kernels and everything above them on each instruction set of this CPU.
test-isa:
	./scripts/test-isa.sh

# The packages with goroutines under the race detector (needs a C compiler).
test-race:
	./scripts/test-race.sh

# The arm64 assembly under user-mode emulation (needs qemu-user-static).
test-arm64:
	./scripts/test-arm64.sh

lint:
	test -z "$$(gofmt -l $$(git ls-files '*.go'))"
	$(GO) vet ./...
	GOARCH=arm64 $(GO) vet ./...
	$(GO) vet -tags purego ./...
	GOOS=js GOARCH=wasm $(GO) vet ./playground
	$(GO) run ./scripts/lengths $$(git ls-files '*.go')
	$(GO) run ./scripts/mutants -list >/dev/null || { $(GO) run ./scripts/mutants -list | grep -B1 'cannot be made'; exit 1; }
	$(GO) run $(STATICCHECK) ./...

# Rewrite the generated amd64 assembly.
generate:
	cd asm/_gen && $(GO) generate ./...

FUZZTIME ?= 20s
fuzz:
	./scripts/fuzz.sh $(FUZZTIME)

# Build the C prototypes of the reference folder and print our figures beside
# theirs (needs gcc; liblemon-dev for the flow solvers).
prototypes: build
	./scripts/prototypes.sh

# Cycles of the inner loops by LLVM's machine-code analyser (needs llvm-19).
mca:
	$(GO) run ./scripts/mca

# Ours beside other programs, in turns in one run: scikit-learn, FAISS and LEMON from Debian's
# packages and, where PEER_DIR has checkouts of it, the code that the authors of FastLloyd
# released (D-Diaa/privateclustering and D-Diaa/FastLloyd; PEER_PYTHON is a Python with its
# packages: numpy, scipy, scikit-learn, matplotlib, diffprivlib, ortools).
PEER_DIR ?=
PEER_PYTHON ?=
peers: build
	apt-get install -y python3-sklearn python3-faiss g++ liblemon-dev
	./bin/cohort bench horizontal fastlloyd-table3 flow embeddings kmeans \
		$(if $(PEER_DIR),--peers $(PEER_DIR)) $(if $(PEER_PYTHON),--peer-python $(PEER_PYTHON))

# Privacy bugs put into copies of the code, one after the other: the tests must catch
# each. SAMPLE tries so many of them.
SAMPLE ?= 0
mutants:
	$(GO) run ./scripts/mutants -sample $(SAMPLE)

bench: build
	./bin/cohort bench --quick --out report

# Compare the Go benchmarks of the working tree with those of revision BASE.
bench-compare:
	./scripts/bench-compare.sh $(BASE)
