package asm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// amxInstruction is an instruction of AMX in the assembly: its text, in Intel's syntax, and its bytes.
type amxInstruction struct {
	text  string
	bytes []byte
}

var (
	amxText      = regexp.MustCompile(`^\s*// AMX: (.*)$`)
	amxDirective = regexp.MustCompile(`^\s*(LONG|WORD|BYTE)\s+\$0x([0-9a-f]+)$`)
)

// amxInstructions reads those of all files, and fails where there are bytes that belong to none, or a routine that
// does not set the tiles before it uses them and release them before each return.
func amxInstructions(t *testing.T) []amxInstruction {
	t.Helper()
	files, err := filepath.Glob("*_amx_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly with AMX: %v", err)
	}
	var list []amxInstruction
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		open, last := false, ""
		for i, line := range strings.Split(string(source), "\n") {
			where := fmt.Sprintf("%s:%d", name, i+1)
			switch m, d := amxText.FindStringSubmatch(line), amxDirective.FindStringSubmatch(line); {
			case m != nil:
				list, last = append(list, amxInstruction{text: m[1]}), m[1]
				if (last == "ldtilecfg [rax]") == open {
					t.Errorf("%s: %s where tiles are set is %t", where, last, open)
				}
				open = last != "tilerelease"
			case d != nil:
				value, err := strconv.ParseUint(d[2], 16, 32)
				if err != nil || len(list) == 0 {
					t.Fatalf("%s: %v", where, err)
				}
				own := &list[len(list)-1]
				own.bytes = append(own.bytes, binary.LittleEndian.AppendUint32(nil, uint32(value))[:map[string]int{
					"LONG": 4, "WORD": 2, "BYTE": 1}[d[1]]]...)
			case strings.TrimSpace(line) == "RET" && open:
				t.Errorf("%s: tiles are not released", where)
			}
		}
	}
	return list
}

// TestAMXBytesDecode takes the bytes of each instruction apart, by the tables of Intel's manual.
func TestAMXBytesDecode(t *testing.T) {
	for _, x := range amxInstructions(t) {
		if got := decodeAMX(x.bytes); got != x.text {
			t.Errorf("% x is %q, want %q", x.bytes, got, x.text)
		}
	}
}

// decodeAMX returns the text of an instruction, and a reason where it is none.
func decodeAMX(b []byte) string {
	if len(b) < 5 || b[0] != 0xc4 || b[1]&31 != 2 || b[2]&0x84 != 0 {
		return "not of the map 0F38 with W = 0 and L = 0"
	}
	names := strings.Fields("rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15")
	extra := func(bit int) int { return int(^b[1]>>bit&1) << 3 }
	other, prefix, mod, reg, rm := int(^b[2]>>3&15), b[2]&3, b[4]>>6, int(b[4]>>3&7)|extra(7), int(b[4]&7)
	tile := func(n int) string { return fmt.Sprintf("tmm%d", n) }
	switch {
	case len(b) == 5 && b[3] == 0x49 && prefix == 0 && b[4] == 0xc0 && other == 0:
		return "tilerelease"
	case len(b) == 5 && b[3] == 0x49 && prefix == 3 && mod == 3 && rm == 0 && other == 0:
		return "tilezero " + tile(reg)
	case len(b) == 5 && b[3] == 0x49 && prefix == 0 && mod == 0 && reg == 0 && other == 0 && rm != 4 && rm != 5:
		return "ldtilecfg [" + names[rm|extra(5)] + "]"
	case len(b) == 5 && b[3] == 0x5e && prefix == 2 && mod == 3:
		return fmt.Sprintf("tdpbsud %s, %s, %s", tile(reg), tile(rm|extra(5)), tile(other))
	case len(b) == 10 && b[3] == 0x4b && mod == 2 && rm == 4 && other == 0 && b[5]>>6 == 0:
		place := fmt.Sprintf("[%s + %s + %d]", names[int(b[5]&7)|extra(5)], names[int(b[5]>>3&7)|extra(6)],
			int32(binary.LittleEndian.Uint32(b[6:])))
		switch prefix {
		case 3:
			return "tileloadd " + tile(reg) + ", " + place
		case 2:
			return "tilestored " + place + ", " + tile(reg)
		}
	}
	return "no instruction that is known here"
}

// TestAMXBytesAssemble compares the bytes with those of the GNU assembler, which comes with a C compiler. That takes
// short forms of displacements, so these are made long by one that needs it.
func TestAMXBytesAssemble(t *testing.T) {
	if _, err := exec.LookPath("as"); err != nil {
		t.Skip("the bytes of AMX are compared with those of the GNU assembler, which is not installed")
	}
	source := []byte(".intel_syntax noprefix\n")
	var want []byte
	displacement := regexp.MustCompile(`\+ (\d+)\]`)
	for _, x := range amxInstructions(t) {
		text, code := x.text, bytes.Clone(x.bytes)
		if m := displacement.FindStringSubmatch(text); m != nil {
			number, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			const far = 1 << 20
			text = displacement.ReplaceAllString(text, fmt.Sprintf("+ %d]", number+far))
			binary.LittleEndian.PutUint32(code[6:], uint32(number+far))
		}
		source = fmt.Appendln(source, text)
		want = append(want, code...)
	}
	object := filepath.Join(t.TempDir(), "amx.o")
	run := exec.Command("as", "--64", "-o", object, "-")
	run.Stdin = bytes.NewReader(source)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := file.Section(".text").Data()
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: as gives\n% x, want\n% x", err, got, want)
	}
}
