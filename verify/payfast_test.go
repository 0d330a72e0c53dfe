package verify

import (
	"crypto/md5"
	"encoding/hex"
	"testing"
)

// TestFieldsVector is the notification of PayFast's PHP SDK, whose signature was
// made without a passphrase: the hash of the fields alone.
func TestFieldsVector(t *testing.T) {
	const body = "m_payment_id=000000020&pf_payment_id=1579137&payment_status=COMPLETE&item_name=Order+%23000000020&item_description=" +
		"&amount_gross=15.00&amount_fee=-2.30&amount_net=12.70&custom_str1=&custom_str2=&custom_str3=&custom_str4=&custom_str5=" +
		"&custom_int1=&custom_int2=&custom_int3=&custom_int4=&custom_int5=&name_first=Tom&name_last=Tom" +
		"&email_address=lindley%2Buser1%40appinlet.com&merchant_id=10027938&signature=4078bca2c8987e0e0c4e7230f2f46323"
	f := Fields{Order: "received", Pair: "=", Join: "&", Until: "signature", Encode: "form"}
	text, err := f.text(&request{Delivery: post(body, "Content-Type", "application/x-www-form-urlencoded")})
	if err != nil {
		t.Fatal(err)
	}
	if sum := md5.Sum([]byte(text)); hex.EncodeToString(sum[:]) != "4078bca2c8987e0e0c4e7230f2f46323" {
		t.Errorf("signed text %q", text)
	}
}
