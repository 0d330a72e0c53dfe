package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"crypto/ed25519"
	"encoding/hex"

	"github.com/PaddleHQ/paddle-go-sdk/v4"
	"github.com/PagerDuty/go-pagerduty/webhookv3"
	"github.com/bwmarrin/discordgo"
	"github.com/google/go-github/v89/github"
	"github.com/line/line-bot-sdk-go/v8/linebot/webhook"
	"github.com/mailgun/mailgun-go/v4"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/webhooks"
	"github.com/razorpay/razorpay-go/utils"
	"github.com/sendgrid/sendgrid-go/helpers/eventwebhook"
	"github.com/slack-go/slack"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	stripe "github.com/stripe/stripe-go/v82/webhook"
	svix "github.com/svix/svix-webhooks/go"
	twilio "github.com/twilio/twilio-go/client"

	"oncegate/internal/delivery"
)

// request turns a delivery into what SDKs take.
func request(d *delivery.Delivery) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), d.Method, publicURL+d.Target, bytes.NewReader(d.Body))
	if err != nil {
		panic(err)
	}
	r.Header = d.Header.Clone()
	return r
}

// goSDKs ask one SDK about one delivery.
var goSDKs = map[string]func(*testing.T, *bench, *delivery.Delivery) bool{
	"stripe": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		return stripe.ValidatePayload(d.Body, d.Header.Get("Stripe-Signature"), b.secret) == nil
	},
	"github": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		_, err := github.ValidatePayload(request(d), []byte(b.secret))
		return err == nil
	},
	"svix":              svixAccepts,
	"resend":            svixAccepts,
	"standard-webhooks": standardAccepts,
	"gitlab":            standardAccepts,
	"yoco":              standardAccepts,
	"supabase-auth":     standardAccepts,
	"bigcommerce": func(t *testing.T, b *bench, d *delivery.Delivery) bool {
		hook, err := standardwebhooks.NewWebhookRaw([]byte(b.secret))
		if err != nil {
			t.Fatal(err)
		}
		return hook.Verify(d.Body, d.Header) == nil
	},
	"openai": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		service := webhooks.NewWebhookService(option.WithWebhookSecret(b.secret))
		return service.VerifySignature(d.Body, d.Header) == nil
	},
	"slack": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		v, err := slack.NewSecretsVerifier(d.Header, b.secret)
		if err != nil {
			return false
		}
		if _, err := v.Write(d.Body); err != nil {
			return false
		}
		return v.Ensure() == nil
	},
	"twilio":       twilioAccepts,
	"twilio-voice": twilioAccepts,
	"sendgrid": func(t *testing.T, b *bench, d *delivery.Delivery) bool {
		key, err := eventwebhook.ConvertPublicKeyBase64ToECDSA(b.public)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := eventwebhook.VerifySignature(key, d.Body, d.Header.Get(eventwebhook.VerificationHTTPHeader), d.Header.Get(eventwebhook.TimestampHTTPHeader))
		return err == nil && ok
	},
	"mailgun": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		var body mailgun.WebhookPayload
		if json.Unmarshal(d.Body, &body) != nil {
			return false
		}
		client := mailgun.NewMailgun("shop.example", "key")
		client.SetWebhookSigningKey(b.secret)
		ok, err := client.VerifyWebhookSignature(body.Signature)
		return err == nil && ok
	},
	"line": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		return webhook.ValidateSignature(b.secret, d.Header.Get("X-Line-Signature"), d.Body)
	},
	"pagerduty": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		return webhookv3.VerifySignature(request(d), b.secret) == nil
	},
	"discord-interactions": discordAccepts,
	"discord-events":       discordAccepts,
	"paddle": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		verifier := paddle.NewWebhookVerifier(b.secret, paddle.VerifierWithTimestampTolerance(time.Minute))
		ok, err := verifier.Verify(request(d))
		return err == nil && ok
	},
	"razorpay": func(_ *testing.T, b *bench, d *delivery.Delivery) bool {
		return utils.VerifyWebhookSignature(string(d.Body), d.Header.Get("X-Razorpay-Signature"), b.secret)
	},
}

func svixAccepts(t *testing.T, b *bench, d *delivery.Delivery) bool {
	hook, err := svix.NewWebhook(b.secret)
	if err != nil {
		t.Fatal(err)
	}
	return hook.Verify(d.Body, d.Header) == nil
}

func standardAccepts(t *testing.T, b *bench, d *delivery.Delivery) bool {
	hook, err := standardwebhooks.NewWebhook(b.secret)
	if err != nil {
		t.Fatal(err)
	}
	return hook.Verify(d.Body, d.Header) == nil
}

func twilioAccepts(_ *testing.T, b *bench, d *delivery.Delivery) bool {
	values, err := url.ParseQuery(string(d.Body))
	if err != nil {
		return false
	}
	params := map[string]string{}
	for name, v := range values {
		params[name] = v[0]
	}
	validator := twilio.NewRequestValidator(b.secret)
	return validator.Validate(publicURL+d.Target, params, d.Header.Get("X-Twilio-Signature"))
}

func discordAccepts(t *testing.T, b *bench, d *delivery.Delivery) bool {
	key, err := hex.DecodeString(b.public)
	if err != nil {
		t.Fatal(err)
	}
	return discordgo.VerifyInteraction(request(d), ed25519.PublicKey(key))
}

// TestGoSDKs: oncegate signs and the SDK verifies; both refuse what was changed.
func TestGoSDKs(t *testing.T) {
	for name, accepts := range goSDKs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agree(t, name, goDifferences[name], func(t *testing.T, b *bench, all []*delivery.Delivery) []bool {
				answers := make([]bool, len(all))
				for i, d := range all {
					answers[i] = accepts(t, b, d)
				}
				return answers
			})
		})
	}
}

// TestGoSDKsSign: the SDK signs and oncegate verifies.
func TestGoSDKsSign(t *testing.T) {
	now := time.Now()
	stamp := strconv.FormatInt(now.Unix(), 10)
	for name, set := range map[string]func(t *testing.T, b *bench, d *delivery.Delivery){
		"stripe": func(_ *testing.T, b *bench, d *delivery.Delivery) {
			signed := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: d.Body, Secret: b.secret, Timestamp: now})
			d.Header.Set("Stripe-Signature", signed.Header)
		},
		"svix": func(t *testing.T, b *bench, d *delivery.Delivery) {
			hook, err := svix.NewWebhook(b.secret)
			if err != nil {
				t.Fatal(err)
			}
			signature, err := hook.Sign(d.Header.Get("Svix-Id"), now, d.Body)
			if err != nil {
				t.Fatal(err)
			}
			d.Header.Set("Svix-Timestamp", stamp)
			d.Header.Set("Svix-Signature", signature)
		},
		"standard-webhooks": func(t *testing.T, b *bench, d *delivery.Delivery) {
			hook, err := standardwebhooks.NewWebhook(b.secret)
			if err != nil {
				t.Fatal(err)
			}
			signature, err := hook.Sign(d.Header.Get("Webhook-Id"), now, d.Body)
			if err != nil {
				t.Fatal(err)
			}
			d.Header.Set("Webhook-Timestamp", stamp)
			d.Header.Set("Webhook-Signature", signature)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := prepare(t, name)
			d := b.Delivery("/hooks/" + name)
			d.Arrived = now
			set(t, b, d)
			accepted(t, b, d)
		})
	}
}
