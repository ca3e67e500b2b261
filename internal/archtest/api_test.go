package archtest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/printer"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/api.txt")

const apiFile = "testdata/api.txt"

// A change of the exported surface is a decision: it shows up here, in the
// change that makes it. "go test ./internal/archtest -update" writes it down.
func TestTheExportedSurfaceIsTheOneWrittenDown(t *testing.T) {
	t.Parallel()
	got := surface(t)
	if *update {
		if err := os.WriteFile(apiFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("not in %s: %s", apiFile, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("only in %s: %s", apiFile, line)
		}
	}
}

func surface(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, f := range goFiles(t) {
		if !isLibrary(f.folder()) || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, line := range exported(t, d) {
				lines = append(lines, f.folder()+": "+line)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// exported returns the exported names of a declaration, one a line, each with
// its type.
func exported(t *testing.T, d ast.Decl) []string {
	t.Helper()
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type)) {
			return nil
		}
		return []string{show(t, &ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})}
	case *ast.GenDecl:
		var lines []string
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				lines = append(lines, exportedType(t, spec)...)
			case *ast.ValueSpec:
				lines = append(lines, exportedValues(t, d.Tok, spec)...)
			}
		}
		return lines
	}
	return nil
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func exportedValues(t *testing.T, tok token.Token, spec *ast.ValueSpec) []string {
	t.Helper()
	var lines []string
	for i, name := range spec.Names {
		if !name.IsExported() {
			continue
		}
		line := tok.String() + " " + name.Name
		if spec.Type != nil {
			line += " " + show(t, spec.Type)
		}
		if tok == token.CONST && i < len(spec.Values) {
			line += " = " + show(t, spec.Values[i])
		}
		lines = append(lines, line)
	}
	return lines
}

func exportedType(t *testing.T, spec *ast.TypeSpec) []string {
	t.Helper()
	name := spec.Name.Name
	if !spec.Name.IsExported() {
		return nil
	}
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		return append([]string{"type " + name + " struct"}, members(t, name, typ.Fields)...)
	case *ast.InterfaceType:
		return append([]string{"type " + name + " interface"}, members(t, name, typ.Methods)...)
	}
	assign := " "
	if spec.Assign.IsValid() {
		assign = " = "
	}
	return []string{"type " + name + assign + show(t, spec.Type)}
}

// members returns the exported fields of a struct, or methods of an interface.
func members(t *testing.T, of string, list *ast.FieldList) []string {
	t.Helper()
	var lines []string
	for _, f := range list.List {
		typ := show(t, f.Type)
		if len(f.Names) == 0 && ast.IsExported(strings.TrimLeft(typ[strings.LastIndex(typ, ".")+1:], "*")) {
			lines = append(lines, "type "+of+", embedded "+typ)
		}
		for _, name := range f.Names {
			if name.IsExported() {
				lines = append(lines, "type "+of+", "+name.Name+" "+typ)
			}
		}
	}
	return lines
}

// show prints a node on one line.
func show(t *testing.T, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := printer.Fprint(&b, fileSet, node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
