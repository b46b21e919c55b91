import { inspect } from 'node:util';

/** The ways in which programs write a text into another; what a person would find the text in. */
export const SPELLINGS: Readonly<Record<string, (text: string) => string>> = {
  'it is': (text) => text,
  'a part of a URI spells it': encodeURIComponent,
  'a URI spells it, in small letters': (text) => encodeURIComponent(text).replace(/%../g, (byte) => byte.toLowerCase()),
  'a URI inside a URI spells it': (text) => encodeURIComponent(encodeURIComponent(text)),
  'a form spells it': (text) => new URLSearchParams({ '': text }).toString().slice(1),
  'the user part of a URL spells it': (text) => Object.assign(new URL('http://h'), { password: text }).password,
  'JSON spells it': (text) => JSON.stringify(text).slice(1, -1),
  'JSON inside JSON spells it': (text) => JSON.stringify(JSON.stringify(text)).slice(3, -3),
  'JSON in ASCII spells it': (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
  'JSON with escaped slashes spells it': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'Node prints it': (text) => inspect([text]).slice(3, -3),
  'Python prints its bytes': (text) =>
    [...Buffer.from(text)]
      .map((byte) => (byte > 126 || byte < 32 ? `\\x${byte.toString(16).padStart(2, '0')}` : String.fromCharCode(byte)))
      .join('')
      .replaceAll('\\', '\\'),
  'a shell escapes it': (text) => text.replace(/[^A-Za-z0-9\u0080-\uffff]/g, '\\$&'),
  'SQL quotes it': (text) => text.replaceAll("'", "''"),
};
