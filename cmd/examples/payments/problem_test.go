package payments_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-dev/semel/cmd/examples/payments"
	"github.com/semel-dev/semel/internal/assert"
)

// TestEachProblemThatIsMadeHasItsTitle reads the code of every process: a code
// that is made somewhere has a title, and so a section in docs/demo.md, and a
// title is of a code that is made.
func TestEachProblemThatIsMadeHasItsTitle(t *testing.T) {
	t.Parallel()
	var made []string
	assert.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || nameOf(call.Fun) != "NewProblem" {
				return true
			}
			literal, ok := call.Args[1].(*ast.BasicLit)
			if !ok {
				t.Errorf("%v: the code is not written where the problem is made", files.Position(call.Pos()))
				return true
			}
			code, err := strconv.Unquote(literal.Value)
			assert.NoError(t, err)
			made = append(made, code)
			return true
		})
		return nil
	}))
	slices.Sort(made)
	assert.Equal(t, slices.Compact(made), payments.ProblemCodes())
}

// nameOf is the name of a called function, without its package.
func nameOf(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}
