// Command prometheus reads a scrape in Prometheus's text format from standard input with Prometheus's own parser, and prints as JSON what it found and what its linter says of it.
package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

type family struct {
	Type   string `json:"type"`
	Series int    `json:"series"`
}

type found struct {
	Families map[string]family `json:"families"`
	Problems []string          `json:"problems"`
}

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		log.Fatal(err)
	}
	result := found{Families: map[string]family{}, Problems: []string{}}
	for name, one := range families {
		result.Families[name] = family{Type: one.GetType().String(), Series: len(one.Metric)}
	}
	problems, err := promlint.New(bytes.NewReader(text)).Lint()
	if err != nil {
		log.Fatal(err)
	}
	for _, problem := range problems {
		result.Problems = append(result.Problems, problem.Metric+": "+problem.Text)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}
