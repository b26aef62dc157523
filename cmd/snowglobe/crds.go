package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"snowglobe.test/internal/manifests"
)

// notInstalled says, a line each, which objects of the files that are named up leaves, because
// they are no definitions. What else a folder holds is known to who names a folder.
func notInstalled(paths []string) (string, error) {
	var lines strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue // Launch has read it, or says why not
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if kinds := otherKinds(string(content)); len(kinds) > 0 {
			fmt.Fprintf(&lines, "snowglobe: only the CRDs of %s are installed; kubectl apply --server-side -f brings the rest: %s\n", path, strings.Join(kinds, ", "))
		}
	}
	return lines.String(), nil
}

// definition finds most definitions, which are long, without reading them.
var definition = regexp.MustCompile(`(?m)^kind: CustomResourceDefinition\s*$`)

// otherKinds returns the kinds of a file but definitions, as they come, each with its number.
func otherKinds(text string) []string {
	var kinds []string
	count := map[string]int{}
	for _, object := range manifests.Cut(text) {
		if definition.MatchString(object.Text) {
			continue
		}
		var typed metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(object.Text), &typed); err != nil || typed.Kind == "" || typed.Kind == "CustomResourceDefinition" {
			continue
		}
		if count[typed.Kind] == 0 {
			kinds = append(kinds, typed.Kind)
		}
		count[typed.Kind]++
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", count[kind], kind)
	}
	return kinds
}
