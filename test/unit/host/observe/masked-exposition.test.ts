import { expect, test } from 'vitest';
import { maskedExposition } from '../../../../host/observe/masked-exposition.ts';
import { maskOf } from '../../../../host/supervisor/mask.ts';

test('a secret is taken out of labels, help and what is no metric, and names and numbers stay', () => {
  const told = [
    '# HELP rows_shop Rows of shop.',
    '# TYPE rows_shop counter',
    'rows_shop_total{by="shop",quote="a\\"shop"} 1234',
    'rows_shop 1234',
    'shop shop',
    '# shop',
    '# TYPE rows shop-1234',
    '# EOF',
  ];

  expect(maskedExposition(told.join('\n'), maskOf(['shop', '1234'])).split('\n')).toEqual([
    '# HELP rows_shop Rows of ***.',
    '# TYPE rows_shop counter',
    'rows_shop_total{by="***",quote="a\\"***"} 1234',
    'rows_shop 1234',
    '*** ***',
    '# ***',
    '# TYPE rows ***-***',
    '# EOF',
  ]);
});
