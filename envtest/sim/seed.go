package sim

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// SeedVariable is the environment variable with the seed of "snowglobe test --seed".
const SeedVariable = "SNOWGLOBE_SEED"

// GivenSeed is the seed in the environment, if there is one.
func GivenSeed() (seed uint64, given bool, err error) {
	text, given := os.LookupEnv(SeedVariable)
	if !given {
		return 0, false, nil
	}
	seed, err = strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("the environment variable %s is %q, and must be a seed: a whole number from 0 on", SeedVariable, text)
	}
	return seed, true, nil
}

// OnlyTest is the pattern for go test -run that matches this test and no other.
func OnlyTest(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// Repeat is the command for a shell that runs tests of a package under a seed, as a Search does. Without a
// pattern it runs all of them.
func Repeat(seed uint64, search Search, pattern, importPath string) string {
	command := fmt.Sprintf("snowglobe test --seed %d %s", seed, search.flags())
	if pattern != "" {
		command += "-run " + Quote(pattern) + " "
	}
	return command + importPath
}

// Quote quotes a word for a shell, if that needs it.
func Quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plain are characters that mean nothing to a shell.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=,:@+%"
