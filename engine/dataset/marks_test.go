package dataset

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every character at every place, beside any others, has a mark unless it is a digit.
func TestMarkOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 300+textPad)
	for trial := range 2000 {
		end := 1 + rng.IntN(300)
		for i := range text {
			text[i] = byte('0' + rng.IntN(10))
			if rng.IntN(3) == 0 {
				text[i] = byte(rng.Uint32())
			}
		}
		text[rng.IntN(end)] = byte(trial)
		marks := make([]uint64, (end+63)/64)
		for i := range marks {
			marks[i] = rng.Uint64() // of a chunk before
		}
		markOthers(marks, text, end)
		for i, c := range text[:end] {
			if got, want := marks[i/64]>>(i%64)&1 == 1, c < '0' || c > '9'; got != want {
				t.Fatalf("character %q at %d of %q: mark %v", c, i, text[:end], got)
			}
		}
	}
}

// oddCells are hard for a parser that looks for marks.
var oddCells = []string{"", " 1", "1 ", "+1", "-", ".", "-.", "1.", ".5", "-.5", "--1", "1-", "1e3", "1E-5", "1.5e",
	"1e+22", "1.2.3", "12345678", "123456789", "12345678.12345678", "1234567.12345678", "0.123456789", "123456789.1",
	"9007199254740993", "0.1234567890123456789", "179769313486231570000", "nan", "\"1\"", "1\r", "\r", "1\t", "\x801",
	"1\xff", "/", ":", "0:5", "00000000", "00000000.00000000", "-0", "-0.0", "99999999.9999999", "#1"}

// Lines are parsed by way of marks as they are without, whatever is in their cells: to the same bits and the same
// errors, and plain ones are.
func TestNumbersLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	taken := 0
	for trial := range 4000 {
		var text bytes.Buffer
		d, lines, odd := 1+rng.IntN(5), 1+rng.IntN(30), rng.IntN(3) == 0
		sep, end := []string{",", ";", "\t"}[trial%3], []string{"\n", "\r\n"}[trial/3%2]
		for range lines {
			cells := make([]string, d)
			for j := range cells {
				cells[j] = strconv.FormatFloat(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(9)-2)), 'f', rng.IntN(9), 64)
				if odd && rng.IntN(4*d*lines) == 0 {
					cells[j] = oddCells[rng.IntN(len(oddCells))]
				}
			}
			text.WriteString(strings.Join(cells, sep) + end)
		}
		s := &textSource{opts: &ReadOptions{Text: TextFormat{DecimalComma: sep == ";" && odd}}, file: &file{name: "f"},
			sep: separator(sep[0]), width: d, to: make([]int, d), schema: Schema{D: d}}
		for j := range s.to {
			s.to[j] = j
		}
		if s.opts.Text.DecimalComma {
			text = *bytes.NewBuffer(bytes.ReplaceAll(text.Bytes(), []byte("."), []byte(",")))
		}
		parse := func(plain bool) (rows []uint64, left int, err error) {
			s.plain = plain
			var b Block
			c := textChunk{source: s, buf: append(slices.Clone(text.Bytes()), make([]byte, textPad)...)}
			c.text = c.buf[:text.Len()]
			err = c.Decode(&b)
			for _, x := range b.Rows[:b.N*d] {
				rows = append(rows, math.Float64bits(x))
			}
			if b.N*d != len(b.Rows) && err == nil {
				t.Fatalf("%d records with %d numbers", b.N, len(b.Rows))
			}
			p := lineParser{s: s, b: &b, text: c.buf, marks: b.marks}
			if plain && p.numbersLine(0, make([]float64, d), s.opts.Text.point(), sep[0]) > 0 {
				taken++
			}
			return rows, b.N, err
		}
		want, n, wrong := parse(false)
		got, m, err := parse(true)
		if fmt.Sprint(err) != fmt.Sprint(wrong) || n != m || !slices.Equal(got, want) {
			t.Fatalf("%q:\n%d records, %v, without marks %d, %v", text.Bytes(), m, err, n, wrong)
		}
	}
	if taken < 3000 {
		t.Errorf("%d of 4000 first lines were plain", taken)
	}
}

// A file of numbers is read by way of marks, one whose columns are chosen in another order is not.
func TestPlainText(t *testing.T) {
	for _, c := range []struct {
		text, columns string
		plain         bool
	}{{"1,2\n3,4\n", "", true}, {"a;b\n1;2\n", "1-2", true}, {"1,2\n", "2,1", false}, {"1,2\n", "1", false},
		{"1 2\n", "", false}} {
		s, err := openFormat(context.Background(), stream("f", strings.NewReader(c.text)), ReadOptions{Columns: c.columns})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.(*textSource).plain; got != c.plain {
			t.Errorf("%q, columns %q: plain %v", c.text, c.columns, got)
		}
	}
}
