package main

// One line per file; the tests of the package asm run them all and compare.

//go:generate go run . -kernels assign_avx512 -out ../assign_avx512_amd64.s -stubs ../assign_avx512_amd64.go -pkg asm
//go:generate go run . -kernels assign_avx2 -out ../assign_avx2_amd64.s -stubs ../assign_avx2_amd64.go -pkg asm
//go:generate go run . -kernels arrivals_avx512 -out ../arrivals_avx512_amd64.s -stubs ../arrivals_avx512_amd64.go -pkg asm
//go:generate go run . -kernels arrivals_avx2 -out ../arrivals_avx2_amd64.s -stubs ../arrivals_avx2_amd64.go -pkg asm
//go:generate go run . -kernels dot_avx512 -out ../dot_avx512_amd64.s -stubs ../dot_avx512_amd64.go -pkg asm
//go:generate go run . -kernels dot_avx2 -out ../dot_avx2_amd64.s -stubs ../dot_avx2_amd64.go -pkg asm
//go:generate go run . -kernels project_avx512 -out ../project_avx512_amd64.s -stubs ../project_avx512_amd64.go -pkg asm
//go:generate go run . -kernels project_avx2 -out ../project_avx2_amd64.s -stubs ../project_avx2_amd64.go -pkg asm
//go:generate go run . -kernels accumulate_avx512 -out ../accumulate_avx512_amd64.s -stubs ../accumulate_avx512_amd64.go -pkg asm
//go:generate go run . -kernels cost_avx512 -out ../cost_avx512_amd64.s -stubs ../cost_avx512_amd64.go -pkg asm
//go:generate go run . -kernels cost_avx2 -out ../cost_avx2_amd64.s -stubs ../cost_avx2_amd64.go -pkg asm
//go:generate go run . -kernels ring_avx512 -out ../ring_avx512_amd64.s -stubs ../ring_avx512_amd64.go -pkg asm
//go:generate go run . -kernels ring_avx2 -out ../ring_avx2_amd64.s -stubs ../ring_avx2_amd64.go -pkg asm
//go:generate go run . -kernels label_avx512 -out ../label_avx512_amd64.s -stubs ../label_avx512_amd64.go -pkg asm
//go:generate go run . -kernels label_avx2 -out ../label_avx2_amd64.s -stubs ../label_avx2_amd64.go -pkg asm
//go:generate go run . -kernels pack_avx2 -out ../pack_avx2_amd64.s -stubs ../pack_avx2_amd64.go -pkg asm
//go:generate go run . -kernels accumulate_avx2 -out ../accumulate_avx2_amd64.s -stubs ../accumulate_avx2_amd64.go -pkg asm
//go:generate go run . -kernels limits_avx512 -out ../limits_avx512_amd64.s -stubs ../limits_avx512_amd64.go -pkg asm
//go:generate go run . -kernels limits_avx2 -out ../limits_avx2_amd64.s -stubs ../limits_avx2_amd64.go -pkg asm
//go:generate go run . -kernels weighted_avx512 -out ../weighted_avx512_amd64.s -stubs ../weighted_avx512_amd64.go -pkg asm
//go:generate go run . -kernels weighted_avx2 -out ../weighted_avx2_amd64.s -stubs ../weighted_avx2_amd64.go -pkg asm
//go:generate go run . -kernels exchange_avx512 -out ../exchange_avx512_amd64.s -stubs ../exchange_avx512_amd64.go -pkg asm
//go:generate go run . -kernels exchange_avx2 -out ../exchange_avx2_amd64.s -stubs ../exchange_avx2_amd64.go -pkg asm
//go:generate go run . -kernels reassign_avx512 -out ../reassign_avx512_amd64.s -stubs ../reassign_avx512_amd64.go -pkg asm
//go:generate go run . -kernels reassign_avx2 -out ../reassign_avx2_amd64.s -stubs ../reassign_avx2_amd64.go -pkg asm
//go:generate go run . -kernels toptwo_avx512 -out ../toptwo_avx512_amd64.s -stubs ../toptwo_avx512_amd64.go -pkg asm
//go:generate go run . -kernels toptwo_avx2 -out ../toptwo_avx2_amd64.s -stubs ../toptwo_avx2_amd64.go -pkg asm
//go:generate go run . -kernels leastdot_avx512 -out ../leastdot_avx512_amd64.s -stubs ../leastdot_avx512_amd64.go -pkg asm
//go:generate go run . -kernels leastdot_avx2 -out ../leastdot_avx2_amd64.s -stubs ../leastdot_avx2_amd64.go -pkg asm
//go:generate go run . -kernels ntt_avx512 -out ../ntt_avx512_amd64.s -stubs ../ntt_avx512_amd64.go -pkg asm
//go:generate go run . -kernels ntt_avx2 -out ../ntt_avx2_amd64.s -stubs ../ntt_avx2_amd64.go -pkg asm
//go:generate go run . -kernels quantise_avx512 -out ../quantise_avx512_amd64.s -stubs ../quantise_avx512_amd64.go -pkg asm
//go:generate go run . -kernels quantise_avx2 -out ../quantise_avx2_amd64.s -stubs ../quantise_avx2_amd64.go -pkg asm
//go:generate go run . -kernels filter_vnni -out ../filter_vnni_amd64.s -stubs ../filter_vnni_amd64.go -pkg asm
//go:generate go run . -kernels filter_avx2 -out ../filter_avx2_amd64.s -stubs ../filter_avx2_amd64.go -pkg asm
//go:generate go run . -kernels filter_amx -out ../filter_amx_amd64.s -stubs ../filter_amx_amd64.go -pkg asm
//go:generate go run . -kernels limits_vnni -out ../limits_vnni_amd64.s -stubs ../limits_vnni_amd64.go -pkg asm
//go:generate go run . -kernels limits_amx -out ../limits_amx_amd64.s -stubs ../limits_amx_amd64.go -pkg asm
//go:generate go run . -kernels narrow_vnni -out ../narrow_vnni_amd64.s -stubs ../narrow_vnni_amd64.go -pkg asm
//go:generate go run . -kernels rank_vnni -out ../rank_vnni_amd64.s -stubs ../rank_vnni_amd64.go -pkg asm
//go:generate go run . -kernels rank_avx2 -out ../rank_avx2_amd64.s -stubs ../rank_avx2_amd64.go -pkg asm
//go:generate go run . -kernels potential_avx512 -out ../potential_avx512_amd64.s -stubs ../potential_avx512_amd64.go -pkg asm
//go:generate go run . -kernels potential_avx2 -out ../potential_avx2_amd64.s -stubs ../potential_avx2_amd64.go -pkg asm
//go:generate go run . -kernels share_avx512 -out ../share_avx512_amd64.s -stubs ../share_avx512_amd64.go -pkg asm
//go:generate go run . -kernels share_avx2 -out ../share_avx2_amd64.s -stubs ../share_avx2_amd64.go -pkg asm
//go:generate go run . -kernels cells_avx512 -out ../cells_avx512_amd64.s -stubs ../cells_avx512_amd64.go -pkg asm
//go:generate go run . -kernels cells_avx2 -out ../cells_avx2_amd64.s -stubs ../cells_avx2_amd64.go -pkg asm
//go:generate go run . -dispatch amd64 -to ../../kernels/dispatch_amd64.go
//go:generate go run . -dispatch arm64 -to ../../kernels/dispatch_arm64.go
//go:generate go run . -dispatch amd64 -to ../../kernels/ntt/dispatch_amd64.go
//go:generate go run . -dispatch arm64 -to ../../kernels/ntt/dispatch_arm64.go
//go:generate go run . -dispatch generic -to ../../kernels/dispatch_generic.go
//go:generate go run . -dispatch generic -to ../../kernels/ntt/dispatch_generic.go
