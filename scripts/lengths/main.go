// Lengths names the functions and the lines of Go files that are too long to read: functions of
// more than 80 lines and lines of more than 120 columns, tests too. Generated files are left out,
// and directives, which cannot be broken. It ends with status 1 if there are any.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"unicode/utf8"
)

// Limits of what is read by hand; a tab is one column.
const (
	mostLines   = 80
	mostColumns = 120
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: lengths FILE.go...")
		flag.PrintDefaults()
	}
	flag.Parse()
	found := 0
	for _, name := range flag.Args() {
		long, err := tooLong(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, "lengths:", err)
			os.Exit(1)
		}
		for _, what := range long {
			fmt.Println(what)
		}
		found += len(long)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// tooLong says what of a file is too long, each with its place.
func tooLong(name string) (long []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	for _, d := range file.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		from, to := files.Position(f.Pos()).Line, files.Position(f.End()).Line
		if n := to - from + 1; n > mostLines {
			long = append(long, fmt.Sprintf("%s:%d: %s has %d lines, at most %d", name, from, f.Name.Name, n, mostLines))
		}
	}
	at := 0
	for line := range bytes.Lines(text) {
		at++
		if n := utf8.RuneCount(bytes.TrimRight(line, "\n")); n > mostColumns && !bytes.HasPrefix(line, []byte("//go:")) {
			long = append(long, fmt.Sprintf("%s:%d: %d columns, at most %d", name, at, n, mostColumns))
		}
	}
	return long, nil
}
