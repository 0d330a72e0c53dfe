// Asks the providers' own SDKs whether a delivery is genuine, or has them make
// one. A line of JSON comes in for each question, and one goes out:
//
//   {"id", "oracle", "preset", "op", "method", "url", "header", "body", "secret", "public", "params"}
//   {"id", "ok", "error", "header", "body"}
//
// Bodies are base64; names of headers are in lower case.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { createHash } from "node:crypto";
import https from "node:https";
import { EventEmitter } from "node:events";

const require = createRequire(import.meta.url);

// What the SDKs print about a bad signature is no news here.
console.warn = console.error = console.log = console.debug = () => {};

const form = (q) => Object.fromEntries(new URLSearchParams(q.body.toString()));

// must turns an SDK that throws into one that answers.
const must = async (call) => {
  await call();
  return true;
};

const verify = {
  async github(q) {
    const { verify } = await import("@octokit/webhooks-methods");
    return verify(q.secret, q.body.toString("latin1"), q.header["x-hub-signature-256"]);
  },
  async square(q) {
    const { WebhooksHelper } = require("square");
    return WebhooksHelper.verifySignature({
      requestBody: q.body.toString(), signatureHeader: q.header["x-square-hmacsha256-signature"],
      signatureKey: q.secret, notificationUrl: q.url,
    });
  },
  async adyen(q) {
    const Validator = require("@adyen/api-library").hmacValidator;
    return JSON.parse(q.body).notificationItems.every((i) => new Validator().validateHMAC(i.NotificationRequestItem, q.secret));
  },
  async "adyen-platform"(q) {
    const Validator = require("@adyen/api-library").hmacValidator;
    return new Validator().validateHMACSignature(q.secret, q.header.hmacsignature, q.body.toString());
  },
  async paddle(q) {
    const { Paddle } = require("@paddle/paddle-node-sdk");
    return new Paddle("key").webhooks.isSignatureValid(q.body.toString(), q.secret, q.header["paddle-signature"]);
  },
  async shopify(q) {
    const rawRequest = new Request("https://shop.example/", { method: "POST", headers: { ...q.header, "x-shopify-api-version": "2024-01" }, body: q.body });
    return (await shopify(q.secret).webhooks.validate({ rawBody: q.body.toString(), rawRequest })).valid;
  },
  async hubspot(q) {
    const { Signature } = require("@hubspot/api-client");
    return Signature.isValid({
      signatureVersion: "v3", method: q.method, url: q.url, requestBody: q.body.toString(), clientSecret: q.secret,
      signature: q.header["x-hubspot-signature-v3"], timestamp: q.header["x-hubspot-request-timestamp"],
    });
  },
  async box(q) {
    const { WebhooksManager } = require("box-node-sdk/managers");
    return WebhooksManager.validateMessage(q.body.toString(), q.header, q.secret);
  },
  async contentful(q) {
    const { verifyRequest } = require("@contentful/node-apps-toolkit");
    return verifyRequest(q.secret, { method: q.method, path: new URL(q.url).pathname, headers: q.header, body: q.body.toString() }, 300);
  },
  async "coinbase-commerce"(q) {
    const { Webhook } = require("coinbase-commerce-node");
    return must(() => Webhook.verifySigHeader(q.body.toString(), q.header["x-cc-webhook-signature"], q.secret));
  },
  async "amazon-sns"(q) {
    const Validator = require("sns-validator");
    // The certificate is not to be had here; q.public stands in for what the
    // SDK would fetch.
    https.get = (url, then) => {
      const response = Object.assign(new EventEmitter(), { statusCode: 200 });
      queueMicrotask(() => {
        then(response);
        response.emit("data", q.public);
        response.emit("end");
      });
      return new EventEmitter();
    };
    return must(() => new Promise((resolve, reject) => new Validator().validate(q.body.toString(), (err) => (err ? reject(err) : resolve()))));
  },
  async "mercado-pago"(q) {
    const { WebhookSignatureValidator } = require("mercadopago");
    return must(() => WebhookSignatureValidator.validate({
      xSignature: q.header["x-signature"], xRequestId: q.header["x-request-id"],
      dataId: new URL(q.url).searchParams.get("data.id"), secret: q.secret,
    }));
  },
  async gocardless(q) {
    const { verifySignature } = require("gocardless-nodejs/webhooks");
    return must(() => verifySignature(q.body, q.secret, q.header["webhook-signature"]));
  },
  async workos(q) {
    const { WorkOS } = require("@workos-inc/node");
    return must(() => new WorkOS("sk_test").webhooks.verifyHeader({ payload: q.body.toString(), sigHeader: q.header["workos-signature"], secret: q.secret }));
  },
  async braintree(q) {
    // A notification that is genuine, and no notification, fails otherwise.
    try {
      await gateway(q).webhookNotification.parse(form(q).bt_signature, form(q).bt_payload);
    } catch (err) {
      if (err.type === require("braintree").errorTypes.invalidSignatureError) throw err;
    }
    return true;
  },
  async linear(q) {
    const { LinearWebhookClient } = await import("@linear/sdk/webhooks");
    return new LinearWebhookClient(q.secret).verify(q.body, q.header["linear-signature"]);
  },
  async "dropbox-sign"(q) {
    const { EventCallbackHelper, EventCallbackRequest } = require("@dropbox/sign");
    return EventCallbackHelper.isValid(q.secret, EventCallbackRequest.init(JSON.parse(form(q).json)));
  },
  async discord(q) {
    const { verifyKey } = require("discord-interactions");
    return verifyKey(q.body, q.header["x-signature-ed25519"], q.header["x-signature-timestamp"], q.public);
  },
  async clerk(q) {
    const { verifyWebhook } = await import("@clerk/backend/webhooks");
    const request = new Request("https://shop.example/", { method: "POST", headers: q.header, body: q.body });
    return must(() => verifyWebhook(request, { signingSecret: q.secret }));
  },
  async chargebee(q) {
    const { basicAuthValidator } = require("chargebee");
    return must(() => basicAuthValidator((user, password) => `${user}:${password}` === q.secret)(q.header));
  },
  async telegram(q) {
    const { webhookCallback } = require("grammy");
    const bot = { isRunning: () => false, init: async () => {}, handleUpdate: async () => {} };
    const handle = webhookCallback(bot, "std/http", { secretToken: q.secret });
    const answer = await handle(new Request("https://shop.example/", { method: "POST", headers: q.header, body: q.body }));
    return answer.status === 200;
  },
  async mollie(q) {
    const { SignatureValidator } = require("mollie-api-typescript");
    return SignatureValidator.validate(q.body.toString(), q.secret, q.header["x-mollie-signature"]);
  },
  async zoom(q) {
    const answer = await zoom(q.secret)({ headers: q.header, body: q.body.toString(), isBase64Encoded: false }, {});
    return answer.statusCode === 200;
  },
  async meta(q) {
    return whatsapp(q.secret).verifyRequestSignature(q.body.toString(), q.header["x-hub-signature-256"]);
  },
  async paystack(q) {
    const { verifyPaystackWebhookSignature } = await import("@alexasomba/paystack-node");
    return verifyPaystackWebhookSignature({ rawBody: q.body, signature: q.header["x-paystack-signature"], secret: q.secret });
  },
  async tern(q) {
    const { WebhookVerificationService } = require("@hookflo/tern");
    const request = new Request("https://shop.example/", { method: "POST", headers: q.header, body: q.body });
    return (await WebhookVerificationService.verifyWithPlatformConfig(request, q.preset, q.secret)).isValid;
  },
  async "google-pubsub"(q) {
    const { OAuth2Client } = require("google-auth-library");
    const [scheme, token] = (q.header.authorization ?? "").split(" ");
    const ticket = await new OAuth2Client().verifySignedJwtWithCertsAsync(token, { k1: q.public }, q.params.audience, ["https://accounts.google.com", "accounts.google.com"]);
    const claims = ticket.getPayload();
    return scheme === "Bearer" && claims.email === q.params.service_account && claims.email_verified;
  },
  async plaid(q) {
    // As Plaid's page does it: the key is what its API answers to the kid.
    const { importSPKI, jwtVerify } = await import("jose");
    const key = await importSPKI(`-----BEGIN PUBLIC KEY-----\n${q.public}\n-----END PUBLIC KEY-----`, "ES256");
    const { payload, protectedHeader } = await jwtVerify(q.header["plaid-verification"], key, { algorithms: ["ES256"], maxTokenAge: "5 min" });
    return protectedHeader.kid === "k1" && payload.request_body_sha256 === sha256(q.body);
  },
  async netlify(q) {
    const { jwtVerify } = await import("jose");
    const { payload } = await jwtVerify(q.header["x-webhook-signature"], Buffer.from(q.secret), { algorithms: ["HS256"], issuer: "netlify" });
    return payload.sha256 === sha256(q.body);
  },
};

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

// once keeps what is costly to make, by the secret it was made for.
const once = (make) => {
  const made = new Map();
  return (secret) => made.get(secret) ?? made.set(secret, make(secret)).get(secret);
};

const shopify = once((apiSecretKey) => {
  require("@shopify/shopify-api/adapters/web-api");
  const { shopifyApi, ApiVersion } = require("@shopify/shopify-api");
  return shopifyApi({
    apiKey: "key", apiSecretKey, hostName: "shop.example", isEmbeddedApp: false,
    apiVersion: Object.values(ApiVersion).at(-1), logger: { log: () => {} },
  });
});

const zoom = once((webhooksSecretToken) => {
  const { AwsLambdaReceiver } = require("@zoom/rivet/meetings");
  const receiver = new AwsLambdaReceiver({ webhooksSecretToken });
  receiver.init({ eventEmitter: { emit: async () => {} } });
  return receiver.start();
});

const whatsapp = once((appSecret) => {
  const { WhatsAppAPI } = require("whatsapp-api-js");
  return new WhatsAppAPI({ token: "token", appSecret, v: "v20.0" });
});

function gateway(q) {
  const braintree = require("braintree");
  return new braintree.BraintreeGateway({ environment: braintree.Environment.Sandbox, merchantId: "m", publicKey: "oncegate", privateKey: q.secret });
}

// What the SDKs make themselves.
const sign = {
  async github(q) {
    const { sign } = await import("@octokit/webhooks-methods");
    return { header: { "x-hub-signature-256": await sign(q.secret, q.body.toString()) } };
  },
  async contentful(q) {
    const { signRequest } = require("@contentful/node-apps-toolkit");
    return { header: signRequest(q.secret, { method: q.method, path: new URL(q.url).pathname, headers: {}, body: q.body.toString() }, Date.now()) };
  },
  async braintree(q) {
    return { body: new URLSearchParams(await gateway(q).webhookTesting.sampleNotification("check", "1")).toString() };
  },
  async adyen(q) {
    const Validator = require("@adyen/api-library").hmacValidator;
    const body = JSON.parse(q.body);
    for (const i of body.notificationItems) {
      i.NotificationRequestItem.additionalData = { hmacSignature: new Validator().calculateHmac(i.NotificationRequestItem, q.secret) };
    }
    return { body: JSON.stringify(body) };
  },
  async "coinbase-commerce"(q) {
    const { Webhook } = require("coinbase-commerce-node");
    return { header: { "x-cc-webhook-signature": Webhook.computeSignature(q.body.toString(), q.secret) } };
  },
  async workos(q) {
    const { WorkOS } = require("@workos-inc/node");
    const at = Date.now();
    return { header: { "workos-signature": `t=${at}, v1=${await new WorkOS("sk_test").webhooks.computeSignature(at, q.body.toString(), q.secret)}` } };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const q = JSON.parse(line);
  q.body = Buffer.from(q.body ?? "", "base64");
  const answer = { id: q.id, ok: false };
  try {
    if (q.op === "sign") {
      const made = await sign[q.oracle](q);
      Object.assign(answer, { ok: true, header: made.header ?? {}, body: made.body === undefined ? undefined : Buffer.from(made.body).toString("base64") });
    } else {
      answer.ok = (await verify[q.oracle](q)) === true;
    }
  } catch (err) {
    answer.error = String(err?.message ?? err).slice(0, 300);
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
