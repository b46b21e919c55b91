/** Shorter values would take ordinary words out of every line, and are no secrets worth the name. */
const SECRET_CHARS_MIN = 4;

/**
 * A function that replaces each of `secrets` in a text by `***`: what a driver says passes through it, for a driver
 * that prints its configuration or a client's error is a fault that must not become a leak.
 */
export function maskOf(secrets: readonly string[]): (text: string) => string {
  const forms = secrets
    .flatMap((secret) => [secret, passwordOf(secret)])
    .filter((form) => form.length >= SECRET_CHARS_MIN);
  const spelled = new Set(forms.flatMap((form) => [form, JSON.stringify(form).slice(1, -1), encodeURIComponent(form)]));
  // The longest first: a secret may hold another.
  const ordered = [...spelled].sort((a, b) => b.length - a.length);
  return (text) => ordered.reduce((masked, form) => masked.replaceAll(form, '***'), text);
}

/** A URI is a secret because of its password, which clients print without the rest. */
function passwordOf(secret: string): string {
  try {
    return decodeURIComponent(new URL(secret).password);
  } catch {
    return '';
  }
}
