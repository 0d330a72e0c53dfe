package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// dotenvCases hold what Laravel's env() returns for a file; "error: n" is a file
// that phpdotenv refuses, with the line that is named. They were compared
// with vlucas/phpdotenv 5.4 and Laravel 8.
func dotenvCases() []struct{ name, text, want string } {
	return []struct{ name, text, want string }{
		{"plain", "A=1\nB=two", `A="1" B="two"`},
		{"line ends", "A=1\r\nB=2\rC=3\n", `A="1" B="2" C="3"`},
		{"byte order mark", "\ufeffA=1", `A="1"`},
		{"blanks around", "  A  =  1  \n\tB\t=\t2\t", `A="1" B="2"`},
		{"comments", "# A=1\n   # B=2\nC=3 # not this\nD=4#nor this\nE=#nothing", `C="3" D="4" E=""`},
		{"export", "export AB=1\nexport\tBC=2\nexport  CD = 3", `AB="1" BC="2" CD="3"`},
		{"export before a name of one letter is refused", "export A=1", `error: 1`},
		{"export alone is a name", "export =1", `export="1"`},
		{"quoted names", "'A'=1\n\"B\"=2", `A="1" B="2"`},
		{"names with dots and digits", "a.b=1\n1A=2", `1A="2" a.b="1"`},
		{"bad name", "A=1\nB-C=2", `error: 2`},
		{"no name", "=1", `error: 1`},
		{"no equals sign takes it away", "A=1\nA", ``},
		{"the last wins", "A=1\nA=2", `A="2"`},
		{"empty", "A=\nB=\"\"\nC=''\nD=empty\nE=(empty)", `A="" B="" C="" D="" E=""`},
		{"null", "A=null\nB=(null)\nC=NULL\nD=\"null\"\nE=nullable", `A=null B=null C=null D=null E="nullable"`},
		{"booleans", "A=true\nB=(false)", `A="true" B="false"`},
		{"single quotes take everything", `A='a # b \n ${B} "c"'`, `A="a # b \\n ${B} \"c\""`},
		{"double quotes", `A="a # b 'c'"`, `A="a # b 'c'"`},
		{"escapes in double quotes", `A="\"\\\$\n\t\r\v\f"`, `A="\"\\$\n\t\r\v\f"`},
		{"an escape that is none", `A="\a"`, `error: 1`},
		{"no escapes without quotes", `A=a\nb\\c`, `A="a\\nb\\\\c"`},
		{"quotes within a bare value", `A=it's"so"`, `A="it's\"so\""`},
		{"two words need quotes", "\n\nA=two words", `error: 3`},
		{"text after the quotes", `A="a"b`, `error: 1`},
		{"comment after the quotes", `A="a" # b`, `A="a"`},
		{"comment right after the quotes", `A='a'#b`, `A="a"`},
		{"a quote that is not closed", `A='a`, `error: 1`},
		{"several lines", "A=\"one\ntwo # no comment\nthree\"\nB=2", `A="one\ntwo # no comment\nthree" B="2"`},
		{"several lines with an escaped quote", "A=\"one\\\"\ntwo\"\nB=2", `A="one\"\ntwo" B="2"`},
		{"several lines, never closed, take the rest with them", "A=1\nB=\"two\nC=3", `A="1"`},
		{"a comment that opens a quote", "# B=\"two\nA=1\nC=\"3\"\nD=4", `D="4"`},
		{"nested", "A=1\nB=${A}\nC=\"x${A}y${B}\"\nD=$A", `A="1" B="1" C="x1y1" D="$A"`},
		{"nested, not known yet", "B=${A}\nA=1", `A="1" B="${A}"`},
		{"nested, escaped", "A=1\nB=\"\\${A}\"\nC='${A}'", `A="1" B="${A}" C="${A}"`},
		{"nested, of the environment", "B=${EXT}\nEXT=other", `B="outside"`},
		{"nested, name made of another", "N=X\nA_X=deep\nB=${A_${N}}", `A_X="deep" B="deep" N="X"`},
		{"nested, not read twice", "A='${B}'\nB=1\nC=${A}", `A="${B}" B="1" C="${B}"`},
		{"env() takes off quotes that are still there", `A='"a"'`, `A="a"`},
		{"password", `A="p@ss/w#rd?%&=:$"`, `A="p@ss/w#rd?%&=:$"`},
		{"equals signs in the value", "A=b=c==", `A="b=c=="`},
		{"not ASCII", "A=Grüße\nB=\"日本 語\"", `A="Grüße" B="日本 語"`},
	}
}

func TestDotenv(t *testing.T) {
	for _, c := range dotenvCases() {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseDotenv([]byte(c.text), map[string]string{"EXT": "outside"})
			var fault dotenvFault
			text := ""
			for i, name := range slices.Sorted(maps.Keys(got)) {
				value := fmt.Sprintf("%q", got[name].text)
				if strings.ContainsFunc(got[name].text, func(r rune) bool { return r > 127 }) {
					value = `"` + got[name].text + `"`
				}
				if got[name].null {
					value = "null"
				}
				text += strings.Repeat(" ", min(i, 1)) + name + "=" + value
			}
			if errors.As(err, &fault) {
				text = fmt.Sprintf("error: %d", fault.line)
			} else if err != nil {
				t.Fatal(err)
			}
			if c.name == "nested, of the environment" {
				text = strings.TrimSuffix(text, ` EXT="other"`) // the environment's stands before it
			}
			if text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func TestDotenvBounds(t *testing.T) {
	for name, text := range map[string]string{
		"too large": strings.Repeat("#", maxDotenv+1),
		"no UTF-8":  "A=\xff",
	} {
		if _, err := parseDotenv([]byte(text), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzDotenv: whatever the file, there is no panic, and an error quotes nothing.
func FuzzDotenv(f *testing.F) {
	for _, c := range dotenvCases() {
		f.Add(c.text)
	}
	f.Add("A=CANARY7 CANARY7\n-CANARY7=1")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := parseDotenv([]byte(text), nil); err != nil && strings.Contains(err.Error(), "CANARY7") {
			t.Fatalf("the error quotes the file: %v", err)
		}
	})
}
