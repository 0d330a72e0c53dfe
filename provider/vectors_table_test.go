package provider

import (
	"time"

	"oncegate/verify"
)

// payPalKey is the modulus of the key that PayPal's sandbox signed with until 2016,
// in base64. The certificate isn't to be had any more; of two signatures s over
// texts m, the modulus is the greatest common divisor of s^65537-m.
const payPalKey = "yF4MCY9RPrzzizQO3t5xbEaUKuxtQhXKAjXkYBSBkX3eIrbdowUT3x139Xnlzg0OlcEzD+q1WKyNxwULuUmUWSjt4ACz4gVk3M+RYVaL2A8/3fw7WrAOS+5dcZkTPhhjxHvw9xEz3sspuhkwLiM0dY7tQbkkJVZyK3CCwx6xWaNEcqhR9XjS96GH4M/mQr/lh+ua4UutFaMIiwG9pbAEXJCdj/MCiKbN2FMQKlRuUifR+PbngQyNNcBMxP/ufSfLPRk4ZmzE6j+seDJ3gHBjdUz4phnfcGZW8MKwmA7QqKhQ3MTFYLw/N7j6yIpxcEyDl8Ot0Er/P/gDbmsAXDSQ6w=="

// A vector is a delivery that others signed and published.
type vector struct {
	preset, from, secret string
	header, params       map[string]string
	target, body         string
	at                   time.Time
	key                  string             // of the certificate that is fetched
	change               func(*verify.Spec) // what the vector writes otherwise than the provider
}

var vectors = []vector{
	{
		preset: "github", from: "GitHub's page on validating deliveries", secret: "It's a Secret to Everybody",
		header: map[string]string{"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
		body:   "Hello, World!",
	},
	{
		preset: "bitbucket", from: "Atlassian's page on managing webhooks", secret: "It's a Secret to Everybody",
		header: map[string]string{"X-Hub-Signature": "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9"},
		body:   "Hello World!",
	},
	{
		preset: "hubspot", from: "HubSpot's page on validating requests, version 1", secret: "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy",
		header: map[string]string{"X-HubSpot-Signature": "232db2615f3d666fe21a8ec971ac7b5402d33b9a925784df3ca654d05f4817de"},
		body:   `[{"eventId":1,"subscriptionId":12345,"portalId":62515,"occurredAt":1564113600000,"subscriptionType":"contact.creation","attemptNumber":0,"objectId":123,"changeSource":"CRM","changeFlag":"NEW","appId":54321}]`,
	},
	{
		preset: "hubspot", from: "the tests of an independent receiver, version 3 with escapes in the URL", secret: "test-secret",
		header: map[string]string{"X-HubSpot-Signature-v3": "FhSZmmHFCVseGt3WeM6l5TdvzRxyHG3Or+1Udj4PokI=", "X-HubSpot-Request-Timestamp": "1700000000000"},
		body:   `{"hello":"world"}`, target: "/path?q=%3a%2F%3f%40%21%24%27%28%29%2A%2c%3B&keep=%20%26%3D%25", at: time.Unix(1_700_000_000, 0),
	},
	{
		preset: "wise", from: "Wise's signature examples, the sandbox's key",
		secret: `MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwpb91cEYuyJNQepZAVfP
ZIlPZfNUefH+n6w9SW3fykqKu938cR7WadQv87oF2VuT+fDt7kqeRziTmPSUhqPU
ys/V2Q1rlfJuXbE+Gga37t7zwd0egQ+KyOEHQOpcTwKmtZ81ieGHynAQzsn1We3j
wt760MsCPJ7GMT141ByQM+yW1Bx+4SG3IGjXWyqOWrcXsxAvIXkpUD/jK/L958Cg
nZEgz0BSEh0QxYLITnW1lLokSx/dTianWPFEhMC9BgijempgNXHNfcVirg1lPSyg
z7KqoKUN0oHqWLr2U1A+7kqrl6O2nx3CKs1bj1hToT1+p4kcMoHXA7kA+VBLUpEs
VwIDAQAB`,
		header: map[string]string{"X-Signature-SHA256": "wKcKCYXAzxNgiu7xmoDm943NUni7Rz33QN8JkEA9dWSGebgndonabgSj18Y4C08OrwVmueGsED2s00M7DtJVcYKOS1i3G4TMVx+mgM3aL9djMBkQtiYNBFUd6wrPI7ZUNHv/TrlKSjTMc+6JFvUvJ7owY3z85e3I4jLRLJowMFvO8kvCJ60+1pY9wDwZvtZ//WS93LrwGjk9Dvwzpmu0w+P4J75tETT5qC3Uv0y5G2yO8SEoO3yNP/tg/BOli02niHb53vEOUWUb9bly6thnfMoXoiV/osoGxgF20R58RlvkAmezyyl1Sv542TfS2DpiwVnmjjjkCyXeSUcKookYLQ=="},
		body:   `{"data":{"resource":{"id":49983981,"profile_id":16055450,"account_id":14124090,"type":"transfer"},"current_state":"incoming_payment_waiting","previous_state":null,"occurred_at":"2021-08-23T10:12:50Z"},"subscription_id":"90aa8e14-4ef1-4a56-861c-f3c9cde097ea","event_type":"transfers#state-change","schema_version":"2.0.0","sent_at":"2021-08-23T10:12:50Z"}`,
	},
	{
		preset: "midtrans", from: "the inputs of Midtrans' documentation, as Omnipay's and others' tests have them", secret: "askvnoibnosifnboseofinbofinfgbiufglnbfg",
		body: `{"status_code":"200","transaction_id":"249fc620-6017-4540-af7c-5a1c25788f46","order_id":"1111","gross_amount":"100000.00","transaction_status":"capture","fraud_status":"accept","signature_key":"edc076b21793ebe3e17926350f5b8ae67d902fe657b3d0aa31b932d5c127e2375d308a2bc94f3265ac2d80a1f181a79b997ac178a236fcff35af263fc4d4c231"}`,
	},
	{
		preset: "paypal", from: "PayPal's own signature, in the tests of PayPal's SDK for Java", key: payPalKey,
		params: map[string]string{"webhook_id": "3RN13029J36659323"},
		header: map[string]string{
			"Paypal-Transmission-Id":   "b2384410-f8d2-11e4-8bf3-77339302725b",
			"Paypal-Transmission-Time": "2015-05-12T18:14:14Z",
			"Paypal-Cert-Url":          "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77",
			"Paypal-Transmission-Sig":  "vSOIQFIZQHv8G2vpbOpD/4fSC4/MYhdHyv+AmgJyeJQq6q5avWyHIe/zL6qO5hle192HSqKbYveLoFXGJun2od2zXN3Q45VBXwdX3woXYGaNq532flAtiYin+tQ/0pNwRDsVIufCxa3a8HskaXy+YEfXNnwCSL287esD3HgOHmuAs0mYKQdbR4e8Evk8XOOQaZzGeV7GNXXz19gzzvyHbsbHmDz5VoRl9so5OoHqvnc5RtgjZfG8KA9lXh2MTPSbtdTLQb9ikKYnOGM+FasFMxk5stJisgmxaefpO9Q1qm3rCjaJ29aAOyDNr3Q7WkeN3w4bSXtFMwyRBOF28pJg9g==",
		},
		body: `{"id":"WH-2W7266712B616591M-36507203HX6402335","create_time":"2015-05-12T18:14:14Z","resource_type":"sale","event_type":"PAYMENT.SALE.COMPLETED","summary":"Payment completed for $ 20.0 USD","resource":{"id":"7DW85331GX749735N","create_time":"2015-05-12T18:13:18Z","update_time":"2015-05-12T18:13:36Z","amount":{"total":"20.00","currency":"USD"},"payment_mode":"INSTANT_TRANSFER","state":"completed","protection_eligibility":"ELIGIBLE","protection_eligibility_type":"ITEM_NOT_RECEIVED_ELIGIBLE,UNAUTHORIZED_PAYMENT_ELIGIBLE","parent_payment":"PAY-1A142943SV880364LKVJEFPQ","transaction_fee":{"value":"0.88","currency":"USD"},"links":[{"href":"https://api.sandbox.paypal.com/v1/payments/sale/7DW85331GX749735N","rel":"self","method":"GET"},{"href":"https://api.sandbox.paypal.com/v1/payments/sale/7DW85331GX749735N/refund","rel":"refund","method":"POST"},{"href":"https://api.sandbox.paypal.com/v1/payments/payment/PAY-1A142943SV880364LKVJEFPQ","rel":"parent_payment","method":"GET"}]},"links":[{"href":"https://api.sandbox.paypal.com/v1/notifications/webhooks-events/WH-2W7266712B616591M-36507203HX6402335","rel":"self","method":"GET"},{"href":"https://api.sandbox.paypal.com/v1/notifications/webhooks-events/WH-2W7266712B616591M-36507203HX6402335/resend","rel":"resend","method":"POST"}]}`,
		at:   time.Date(2015, 5, 12, 18, 14, 14, 0, time.UTC),
	},
	{
		preset: "paypal", from: "PayPal's own signature, in the samples of PayPal's SDK for Node", key: payPalKey,
		params: map[string]string{"webhook_id": "3TR748995U920805P"},
		header: map[string]string{
			"Paypal-Transmission-Id":   "103e3700-8b0c-11e6-8695-6b62a8a99ac4",
			"Paypal-Transmission-Time": "2016-10-05T14:57:40Z",
			"Paypal-Cert-Url":          "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77",
			"Paypal-Transmission-Sig":  "t8hlRk64rpEImZMKqgtp5dlWaT1W8ed/mf8Msos341QInVn3BMQubjAhM/cKiSJtW07VwJvSX7X4+YUmHBrm5BQ+CEkClke4Yf4ouhCK6GWsfs0J8cKkmjI0XxfJpPLgjROEWY3MXorwCtbvrEo5vrRI2+TyLkquBKAlM95LbNWG43lxMu0LHzsSRUBDdt5IP1b2CKqbcEJKGrC78iw+fJEQGagkJAiv3Qvpw8F/8q7FCQAZ3c81mzTvP4ZH3Xk2/nNznEA7eMi3u1EjSpTmLfAb423ytX37Ts0QpmPNgxJe8wnMB/+fvt4xjYH6KNe+bIcYU30hUIe9O8c9UFwKuQ==",
		},
		body: `{"id":"WH-82L71649W50323023-5WC64761VS637831A","event_version":"1.0","create_time":"2016-10-05T14:57:40Z","resource_type":"sale","event_type":"PAYMENT.SALE.COMPLETED","summary":"Payment completed for $ 6.01 USD","resource":{"id":"8RS6210148826604N","state":"completed","amount":{"total":"6.01","currency":"USD","details":{"subtotal":"3.00","tax":"0.01","shipping":"1.00","handling_fee":"2.00","shipping_discount":"3.00"}},"payment_mode":"INSTANT_TRANSFER","protection_eligibility":"ELIGIBLE","protection_eligibility_type":"ITEM_NOT_RECEIVED_ELIGIBLE,UNAUTHORIZED_PAYMENT_ELIGIBLE","transaction_fee":{"value":"0.47","currency":"USD"},"invoice_number":"","custom":"Hello World!","parent_payment":"PAY-11X29866PC6848407K72RIQA","create_time":"2016-10-05T14:57:18Z","update_time":"2016-10-05T14:57:26Z","links":[{"href":"https://api.sandbox.paypal.com/v1/payments/sale/8RS6210148826604N","rel":"self","method":"GET"},{"href":"https://api.sandbox.paypal.com/v1/payments/sale/8RS6210148826604N/refund","rel":"refund","method":"POST"},{"href":"https://api.sandbox.paypal.com/v1/payments/payment/PAY-11X29866PC6848407K72RIQA","rel":"parent_payment","method":"GET"}]},"links":[{"href":"https://api.sandbox.paypal.com/v1/notifications/webhooks-events/WH-82L71649W50323023-5WC64761VS637831A","rel":"self","method":"GET"},{"href":"https://api.sandbox.paypal.com/v1/notifications/webhooks-events/WH-82L71649W50323023-5WC64761VS637831A/resend","rel":"resend","method":"POST"}]}`,
		at:   time.Date(2016, 10, 5, 14, 57, 40, 0, time.UTC),
	},
	{
		preset: "circleci", from: "CircleCI's page on webhooks", secret: "secret",
		header: map[string]string{"circleci-signature": "v1=734cc62f32841568f45715aeb9f4d7891324e6d948e4c6c60c0621cdac48623a"},
		body:   `hello world`,
	},
	{
		preset: "circleci", from: "CircleCI's page on webhooks", secret: "another-secret",
		header: map[string]string{"circleci-signature": "v1=daa220016c8f29a8b214fbfc3671aeec2145cfb1e6790184ffb38b6d0425fa00"},
		body:   `lalala`,
	},
	{
		preset: "jira", from: "Atlassian's page on Jira's webhooks", secret: "It's a Secret to Everybody",
		header: map[string]string{"X-Hub-Signature": "sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9"},
		body:   `Hello World!`,
	},
	{
		preset: "quickbooks", from: "the tests of Intuit's SDK for Java", secret: "b5771f19b12ddb4bcdb9f08bdc50bc63878a",
		header: map[string]string{"intuit-signature": "JC2GUwciPmRBwEO7WvrRmKqu9tGOKL8FFallocTFi8Q="},
		body:   `{"eventNotifications":[{"realmId":"1185883450","dataChangeEvent":{"entities":[{"name":"Customer","id":"1","operation":"Create","lastUpdated":"2015-10-05T14:42:19-0700"}]}}]}`,
	},
	{
		preset: "zendesk", from: "the tests of an independent receiver, with the secret that Zendesk signs its test deliveries with; it has seconds where Zendesk writes RFC 3339", secret: "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==",
		header: map[string]string{"X-Zendesk-Webhook-Signature": "qtmu3iClLKujnujOBkwe7yjI34o5CzsLD04Uy4LbE2A=", "X-Zendesk-Webhook-Signature-Timestamp": "1531420618"},
		body:   `{"event_type": "foo.bar","data": {"key": "value"}}`,
		change: func(s *verify.Spec) { s.Time.Unit = "s" },
	},
	{
		preset: "recurly", from: "the tests of an independent receiver", secret: "recurly_secret",
		header: map[string]string{"recurly-signature": "1659641851000,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,ced656db6ac83dfaf36c31833b27f95b8e6b8eb1ebb7df69ba8f65821f1af98c"},
		body:   `{"id":"jx4s2ybfvmh8","object_type":"subscription","site_id":"site1","event_type":"created","event_time":"2022-08-04T19:37:31Z","account_code":"acct1"}`,
		at:     time.Unix(1659641851, 0),
	},
	{
		preset: "authorize-net", from: "the tests of an independent receiver", secret: "ANET_SIG_KEY",
		header: map[string]string{"X-ANET-Signature": "sha512=3D61DDAD54AB05A8932039B6C4D7A934DF9219708C93C211BCC69EA0E257EDD075BA181061AD4CD8031C5CBD7B83BDE5E03D0A3F1026D0B7C61985E32BB1D94A"},
		body:   `{"notificationId":"d0e8e7fe-c3e7-4add-a480-27bc5ce28a14","eventType":"net.authorize.payment.authcapture.created","eventDate":"2017-03-29T20:48:02.0080095Z","webhookId":"63d6fea2-aa13-4b1d-a204-f5fbc15942b7","payload":{"responseCode":1,"authAmount":45.00,"entityName":"transaction","id":"60020981676"}}`,
	},
	{
		preset: "checkout-com", from: "the tests of an independent receiver", secret: "cko_key",
		header: map[string]string{"Cko-Signature": "c60edad3a800d421eb5b1a8231fea3069d4a3ea9cf33c7898a6b57b4f338427e"},
		body:   `{"id":"evt_az5sblvku4ge3dwpztvyizgcau","type":"payment_approved","created_on":"2024-01-01T00:00:00Z","data":{"id":"pay_1"}}`,
	},
	{
		preset: "calendly", from: "the tests of an independent receiver", secret: "calendly_key",
		header: map[string]string{"Calendly-Webhook-Signature": "t=1700000000,v1=d6e180d65490baad58eb05bee811735ef6e1d522baaa05b7ee56482716cf700d"},
		body:   `{"event":"invitee.created","created_at":"2023-11-14T22:13:20.000000Z","created_by":"https://api.calendly.com/users/AAA","payload":{"email":"a@example.com"}}`,
		at:     time.Unix(1_700_000_000, 0),
	},
	{
		preset: "vercel", from: "the tests of an independent receiver", secret: "vercel_secret",
		header: map[string]string{"x-vercel-signature": "121fc49dd29b913bbb19ad65e8dc00f569f5f73c"},
		body:   `{"id":"evt_1","type":"deployment.succeeded","createdAt":1700000000000,"payload":{"deployment":{"id":"dpl_1"}}}`,
	},
	{
		preset: "intercom", from: "the tests of an independent receiver", secret: "intercom_secret",
		header: map[string]string{"X-Hub-Signature": "sha1=e0d6deaa5785a871c44a56b6c3138ce190b6cc98"},
		body:   `{"type":"notification_event","id":"notif_1","topic":"conversation.user.created","app_id":"abc","created_at":1700000000,"data":{"type":"notification_event_data","item":{"type":"conversation","id":"1"}}}`,
	},
	{
		preset: "typeform", from: "the tests of an independent receiver", secret: "typeform_secret",
		header: map[string]string{"Typeform-Signature": "sha256=tpceH674tX4nhoHSDRkfV4/WGakns3OkNWpJ7GGZMko="},
		body:   `{"event_id":"01H","event_type":"form_response","form_response":{"form_id":"abc","token":"tok","submitted_at":"2023-11-14T22:13:20Z","answers":[]}}`,
	},
	{
		preset: "sentry", from: "the tests of an independent receiver", secret: "sentry_secret",
		header: map[string]string{"Sentry-Hook-Signature": "c331a1851ad9016b22f6a22ce39c90df652bbe21a36a7c46664b09a4b1cbdbe6", "Sentry-Hook-Resource": "issue"},
		body:   `{"action":"created","installation":{"uuid":"inst-1"},"data":{"issue":{"id":"1"}},"actor":{"type":"application"}}`,
	},
}
