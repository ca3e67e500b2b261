package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/datamodel"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"github.com/semel-dev/semel/cmd/checkreport"
)

// configured reads a file of operations. What the command line says holds for
// each of them where the file says nothing.
func configured(path string, base checkOptions) ([]operation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--config: %w", err)
	}
	var file struct {
		Operations []yaml.RawMessage `yaml:"operations"`
	}
	if err := plain(text); err != nil {
		return nil, usagef("--config: %s: %w", path, err)
	}
	if err := decodeStrictly(text, &file); err != nil {
		return nil, usagef("--config: %s: %w", path, err)
	}
	if len(file.Operations) == 0 {
		return nil, usagef("--config: %s lists no operations", path)
	}
	var all []operation
	for i, raw := range file.Operations {
		one := base.clone()
		if err := decodeStrictly(raw, &one); err != nil {
			return nil, usagef("--config: %s: operation %d: %w", path, i+1, err)
		}
		op, err := one.operation()
		if err != nil {
			return nil, fmt.Errorf("--config: %s: operation %d: %w", path, i+1, err)
		}
		all = append(all, op)
	}
	return all, nil
}

// deepest is how deep brackets may stand in a file of operations.
const deepest = 20

// plain refuses what a file of operations has no use for and the library does not
// survive: aliases, which may stand in themselves or multiply, and endless brackets.
func plain(text []byte) error {
	depth := 0
	for _, t := range lexer.Tokenize(string(text)) {
		switch t.Type {
		case token.AliasType:
			return fmt.Errorf("line %d: aliases (*) are not read here", t.Position.Line)
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		default:
		}
		if depth > deepest {
			return fmt.Errorf("line %d: brackets stand more than %d deep", t.Position.Line, deepest)
		}
	}
	return nil
}

func decodeStrictly(text []byte, into any) error {
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(into)
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	return err
}

// declared reads the operations of an OpenAPI document that declare the key's
// field, with the first example of their body.
func declared(path, base string, options checkOptions) ([]operation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usagef("--openapi: %w", err)
	}
	// The library would print what it does not like.
	doc, err := libopenapi.NewDocumentWithConfiguration(text, &datamodel.DocumentConfiguration{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, usagef("--openapi: %s: %w", path, err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		return nil, usagef("--openapi: %s: %w", path, err)
	}
	if model.Model.Paths == nil {
		return nil, usagef("--openapi: %s has no paths", path)
	}
	var all []operation
	for route, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, declaration := range item.GetOperations().FromOldest() {
			if !declares(item.Parameters, options.KeyHeader) && !declares(declaration.Parameters, options.KeyHeader) {
				continue
			}
			op, err := fromDeclaration(method, base, route, declaration, options.clone())
			if err != nil {
				return nil, usagef("--openapi: %s: %s %s: %w", path, strings.ToUpper(method), route, err)
			}
			op.at = checkreport.Location{File: path, Line: lineOf(declaration)}
			all = append(all, op)
		}
	}
	if len(all) == 0 {
		return nil, usagef("--openapi: no operation of %s declares the field %s", path, options.KeyHeader)
	}
	return all, nil
}

func declares(parameters []*v3.Parameter, field string) bool {
	for _, p := range parameters {
		if p.In == "header" && strings.EqualFold(p.Name, field) {
			return true
		}
	}
	return false
}

func lineOf(declaration *v3.Operation) int {
	if low := declaration.GoLow(); low != nil && low.KeyNode != nil {
		return low.KeyNode.Line
	}
	return 1
}

// fromDeclaration makes an operation of a declared one.
func fromDeclaration(method, base, route string, declaration *v3.Operation, options checkOptions) (operation, error) {
	if strings.Contains(route, "{") {
		return operation{}, errors.New("its path has parameters: name the operation in a file for --config")
	}
	options.Request = method
	if options.Data == "" && declaration.RequestBody != nil {
		media, body, err := exampleOf(declaration.RequestBody.Content)
		if err != nil {
			return operation{}, err
		}
		options.Data = body
		options.Header = append(options.Header, "Content-Type: "+media)
	}
	options.URL = strings.TrimSuffix(base, "/") + route
	return options.operation()
}

// exampleOf returns the first example of a JSON body, as JSON.
func exampleOf(content *orderedmap.Map[string, *v3.MediaType]) (media, body string, err error) {
	for media, of := range content.FromOldest() {
		if !strings.Contains(media, "json") {
			continue
		}
		nodes := of.Example
		for _, named := range of.Examples.FromOldest() {
			if nodes == nil {
				nodes = named.Value
			}
		}
		if nodes == nil {
			continue
		}
		var value any
		if err := nodes.Decode(&value); err != nil {
			return "", "", err
		}
		text, err := json.Marshal(value)
		return media, string(text), err
	}
	return "", "", errors.New("its body has no example in JSON: give one in the document, or with --data")
}
