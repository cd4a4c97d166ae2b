// Command admission asks the API server's own code what it says of the objects in test/golden/manifests/admission.json under our CRDs.
//
//	cd test/oracle/admission && go run . ../../golden/manifests/admission.json ../../../crds/*.yaml
//
// It checks the CRDs as an API server does when they are created (structure, CEL compiled, CEL cost), then each object: unknown fields, defaults, schema,
// lists, CEL. It writes the specs with defaults into the file and exits 1 where its verdict is not the file's.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

type admissionCase struct {
	Case   string          `json:"case"`
	Object json.RawMessage `json:"object"`
	Code   *string         `json:"code"`
	Path   *string         `json:"path"`
	Spec   any             `json:"spec,omitempty"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	kinds, failures := readCRDs(os.Args[2:])
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var cases []admissionCase
	must(json.Unmarshal(text, &cases))
	for i := range cases {
		object, reasons := judge(kinds, cases[i].Object)
		cases[i].Spec = nil
		if (len(reasons) == 0) != (cases[i].Code == nil) {
			failures++
			fmt.Printf("%s: the file says %v, the API server %q\n", cases[i].Case, cases[i].Code, reasons)
		} else if len(reasons) == 0 {
			cases[i].Spec = object["spec"]
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	must(encoder.Encode(cases))
	must(os.WriteFile(os.Args[1], out.Bytes(), 0o644))
	fmt.Printf("%d objects, %d differences\n", len(cases), failures)
	if failures > 0 {
		os.Exit(1)
	}
}

func readCRDs(files []string) (map[string]*apiextensions.JSONSchemaProps, int) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	kinds := map[string]*apiextensions.JSONSchemaProps{}
	failures := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(err)
		var crd v1.CustomResourceDefinition
		must(yaml.UnmarshalStrict(text, &crd))
		v1.SetDefaults_CustomResourceDefinition(&crd)
		v1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
		var internal apiextensions.CustomResourceDefinition
		must(scheme.Convert(&crd, &internal, nil))
		internal.Status.StoredVersions = []string{"v1alpha1"}
		for _, problem := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), &internal) {
			failures++
			fmt.Printf("%s: %v\n", file, problem)
		}
		given := internal.Spec.Validation
		if given == nil {
			given = internal.Spec.Versions[0].Schema
		}
		kinds[internal.Spec.Names.Kind] = given.OpenAPIV3Schema
	}
	return kinds, failures
}

func judge(kinds map[string]*apiextensions.JSONSchemaProps, text []byte) (map[string]any, []string) {
	var object map[string]any
	must(utiljson.Unmarshal(text, &object))
	props := kinds[object["kind"].(string)]
	structural, err := schema.NewStructural(props)
	must(err)
	reasons := pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
	defaulting.Default(object, structural)
	validator, _, err := validation.NewSchemaValidator(props)
	must(err)
	problems := validation.ValidateCustomResource(nil, object, validator)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	if len(problems) == 0 {
		rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
		broken, _ := rules.Validate(context.Background(), field.NewPath(""), structural, object, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, broken...)
	}
	for _, problem := range problems {
		reasons = append(reasons, problem.Error())
	}
	return object, reasons
}
