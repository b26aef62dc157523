// Package transcript owns the record of what a case asked a server and what came: the last
// requests and answers, shortened, without credentials. It changes neither, and knows
// nothing of cases.
package transcript
