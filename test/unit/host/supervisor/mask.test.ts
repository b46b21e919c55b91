import { expect, test } from 'vitest';
import { maskOf } from '../../../../host/supervisor/mask.ts';

test('a secret is taken out as it is, as JSON spells it and as a URI spells it', () => {
  const mask = maskOf(['pa"ss wörd']);

  expect(mask('pa"ss wörd, "pa\\"ss wörd", pa%22ss%20w%C3%B6rd')).toBe('***, "***", ***');
});

test('the password of a secret URI is a secret of its own', () => {
  expect(maskOf(['postgres://u:s3cr3t%21@db/shop'])('login failed: s3cr3t!')).toBe('login failed: ***');
});

test('a value too short to be a secret leaves the words of a line alone', () => {
  expect(maskOf(['', 'a'])('a plain line')).toBe('a plain line');
});
