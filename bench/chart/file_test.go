package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// A drawing as a file is well-formed, has its title, its legend and both themes, and refers to nothing outside.
func TestFileStandsAlone(t *testing.T) {
	p := Plot{Title: "Loss & gain", XName: "epsilon", YName: "NICV", Curves: []Curve{
		{Name: "one", Points: []Point{{X: 1, Y: 2}, {X: 2, Y: 3}}},
		{Name: "another", Colour: 1, Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 2}}},
		{Name: "a paper's", Colour: 1, Reference: "printed", Points: []Point{{X: 1, Y: 1}, {X: 2, Y: 2}}}}}
	bars := p
	bars.Bars, bars.Categories = true, []string{"a", "b", "c"}
	for _, p := range []Plot{p, bars} {
		text := string(p.File())
		d := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
		}
		for _, want := range []string{"Loss &amp; gain", ">one<", ">another<", ">printed<",
			"prefers-color-scheme: dark", `xmlns="http://www.w3.org/2000/svg"`} {
			if !strings.Contains(text, want) {
				t.Errorf("bars %v: the file lacks %s", p.Bars, want)
			}
		}
		if strings.Contains(text, "href") || strings.Count(text, "http") != 1 || strings.Count(text, "<svg") != 2 {
			t.Errorf("bars %v: the file is\n%s", p.Bars, text)
		}
	}
}
