// Package spelling finds what somebody meant who misspelt a word.
package spelling

import "strings"

// Hint turns the word that was found, if any, into a question.
func Hint(near string) string {
	if near == "" {
		return ""
	}
	return "; did you mean " + near + "?"
}

// Nearest returns the known word within the given edit distance (Levenshtein), or "". Capitals count as small
// letters. Of equally near ones it takes the one with the same first letter: that is the letter people get
// right.
func Nearest(word string, known []string, within int) string {
	best, lowest := "", 2*within+2
	for _, k := range known {
		cost := 2 * distance(word, k)
		if word == "" || k == "" || !strings.EqualFold(word[:1], k[:1]) {
			cost++
		}
		if cost < lowest {
			best, lowest = k, cost
		}
	}
	return best
}

func distance(a, b string) int {
	const longest = 64 // domains and keys are short; a hostile one costs no more than this
	if len(a) > longest || len(b) > longest {
		return longest
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
