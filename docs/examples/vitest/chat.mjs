// A minimal client of the chat service that respects Retry-After.
const KEY = Buffer.from("reference-api-key:reference-api-secret").toString("base64");
// Setting IMPATIENT disables retries, which makes the tests fail.
const TRIES = process.env.IMPATIENT ? 1 : 5;

export function chat(base) {
  const ask = async (method, path, form) => {
    for (let left = TRIES - 1; ; left -= 1) {
      const body = form && new URLSearchParams(form);
      const answer = await fetch(base + path, { method, body, headers: { Authorization: `Basic ${KEY}` } });
      if (answer.ok) return answer.json();
      if (left === 0 || ![429, 503].includes(answer.status)) throw new Error(`${method} ${path}: ${answer.status}`);
      await new Promise((again) => setTimeout(again, 1000 * Number(answer.headers.get("Retry-After") ?? 1)));
    }
  };
  return {
    createService: (name) => ask("POST", "/chat/v2/Services", { FriendlyName: name }),
    services: async () => (await ask("GET", "/chat/v2/Services")).services,
  };
}
