#!/usr/bin/env node
import { existsSync } from 'node:fs';

const program = new URL('../dist/main.js', import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  console.error('urutau-host is not built yet: run `npm run build` in the repository first');
  process.exitCode = 2;
}
