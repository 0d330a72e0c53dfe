package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"oncegate/e2e/harness"
)

// handlerRefused is what the shop's own handler says to a delivery without a
// signature: whoever reads it has reached the handler.
const handlerRefused = "bad signature"

// pathForms lists ways to write the webhook's path, or something that looks
// like it: as a raw request target.
func pathForms() []string {
	const path = "/stripe/webhook"
	forms := []string{
		path, path + "?a=b", path + "?", path + "#x", path + "/", path + "//", path + "/?x", path + "///",
		"/" + path, "//" + path, "/stripe//webhook", "//stripe//webhook//",
		"/stripe%2Fwebhook", "/stripe%2fwebhook", "%2Fstripe%2Fwebhook", "/%2Fstripe/webhook", "/stripe/%2Fwebhook", path + "%2F", path + "%2F%2f",
		"/stripe%252Fwebhook", "/%2573tripe/webhook",
		"/./stripe/webhook", "/stripe/./webhook", path + "/.", path + "/./", "/x/../stripe/webhook", "/stripe/x/../webhook", path + "/x/..", path + "/..", "/../stripe/webhook",
		"/x/%2e%2e/stripe/webhook", "/%2e/stripe/webhook", "/stripe/%2E/webhook", path + "/%2e", "/x/.%2e/stripe/webhook", "/x%2F..%2Fstripe/webhook", "/x%2f%2e%2e%2fstripe%2fwebhook",
		"/index.php" + path, "/index.php/" + path, "/index.php" + path + "/", "/index.php/index.php" + path, "//index.php" + path, "/./index.php" + path,
		"/x/../index.php" + path, "/index%2Ephp" + path, "/%69ndex.php" + path, "/index.php%2Fstripe%2Fwebhook", "/index.php/stripe%2Fwebhook", "/INDEX.PHP" + path, "/Index.php" + path,
		"/index.php?" + path, "/index.php", "/?" + path, "/index.phpstripe/webhook", "/index.phpstripe%2fwebhook/", "/index.php/./stripe/webhook", "/index.php/x/../stripe/webhook", "/public/index.php" + path, "/public" + path,
		"/index.php;x" + path, "/index.php " + path, "/index.php%20" + path, "/index.php%00" + path,
		"/STRIPE/webhook", "/Stripe/Webhook", "/stripe/WEBHOOK",
		path + ";x=y", "/stripe;x/webhook", path + "%3Bx", path + "%3Fx", path + "%23x",
		path + "%00", path + "%0a", path + "%0d%0a", path + "%20", path + "+", path + "%09", "/%20stripe/webhook", "/stripe%20/webhook", "/stripe /webhook",
		"/stripe\\webhook", "/stripe%5Cwebhook", "\\stripe\\webhook", path + "\\", path + "%5C", "/..\\stripe/webhook",
		path + ".php", path + "/index.php", path + ".json", path + "/x", "/x" + path,
		"/stripe%c0%afwebhook", "/stripe%ef%bc%8fwebhook", "/%C5%9Ftripe/webhook", "/stripe/webhoo%E2%84%AA",
		"/st%zzripe/webhook", path + "%", path + "%2", "/stripe/w%u0065bhook",
		"http://shop.example" + path, "http://shop.example/index.php" + path, "HTTP://shop.example" + path, "http://shop.example:80//stripe/webhook", "https://shop.example" + path,
		"x:" + path, "x:/index.php" + path, "http:" + path, "http:///stripe/webhook", "http://" + path, "http://shop.example?" + path, "http://shop.example#" + path,
		"//user@shop.example:99999" + path, "//" + path + ":1", path + ":1", "/:80" + path,
		"stripe/webhook", "*", "//shop.example" + path, "shop.example:80",
	}
	// Every single character of the path, percent-encoded.
	for i := 1; i < len(path); i++ {
		forms = append(forms,
			path[:i]+fmt.Sprintf("%%%02x", path[i])+path[i+1:],
			path[:i]+fmt.Sprintf("%%%02X", path[i])+path[i+1:])
	}
	// And all of them at once.
	var all strings.Builder
	for _, c := range []byte(path[1:]) {
		fmt.Fprintf(&all, "%%%02x", c)
	}
	return append(forms, "/"+all.String(), "/index.php/"+all.String())
}

// reachesHandler sends an unsigned delivery to a raw target and tells whether
// the shop's handler saw it.
func reachesHandler(addr, method, target string, more ...string) (harness.Answer, bool) {
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: shop.example", "Content-Type: application/json"}, more...)
	answer := harness.SendRaw(addr, lines, harness.NewEvent(1).Body)
	return answer, bytes.Contains(answer.Body, []byte(handlerRefused))
}

// TestPathFormsControl notes which ways of writing the webhook's path lead the
// real router to the handler. It is the list that oncegate has to know.
func TestPathFormsControl(t *testing.T) {
	shop := harness.NewShop(t, harness.ShopOptions{})
	var reach []string
	for _, form := range pathForms() {
		a, reached := reachesHandler(shop.Addr, "POST", form)
		if reached {
			reach = append(reach, form)
		}
		t.Logf("%-45q %v reached=%v", form, a.Status, reached)
	}
	for _, form := range []string{"/stripe/webhook", "/stripe/webhook/", "/stripe%2Fwebhook", "/index.php/stripe/webhook"} {
		if !slices.Contains(reach, form) {
			t.Errorf("%s does not reach the handler: the test's forms prove nothing", form)
		}
	}
}
