package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"
	"github.com/spf13/cobra"

	"github.com/cohort-engine/cohort/engine"
	"github.com/cohort-engine/cohort/kernels"
	"github.com/cohort-engine/cohort/kernels/ntt"
)

func newVersionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Version, Go, CPU, and the instruction sets in use",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := selectKernels(); err != nil {
				return err
			}
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
				CPU     string `json:"cpu"`
				Cores   int    `json:"cores"`
				ISA     string `json:"isa"`
				// Kernels says on which instruction set each kernel runs.
				Kernels []kernels.KernelPath `json:"kernels"`
			}{engine.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, cmp.Or(cpuid.CPU.BrandName, "unnamed"),
				runtime.NumCPU(), kernels.ISA(), append(kernels.Paths(), ntt.Paths()...)}
			out := cmd.OutOrStdout()
			return show(out, format, v, func() error {
				var b strings.Builder
				fmt.Fprintf(&b, "cohort   %s\ngo       %s %s/%s\ncpu      %s, %d logical cores\nkernels  %s\n",
					v.Version, v.Go, v.OS, v.Arch, v.CPU, v.Cores, v.ISA)
				for _, k := range v.Kernels {
					fmt.Fprintf(&b, "  %-24s %s\n", k.Kernel, k.Path)
				}
				_, err := io.WriteString(out, b.String())
				return err
			})
		},
	}
	choose(cmd.Flags(), &format, "format", "text or json", "text", "json")
	return cmd
}
