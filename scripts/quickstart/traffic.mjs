/** One transaction of a busy shop; the number of the change decides which, so that every kind comes by. Answers its kind. */
export async function changeSomething(client, number) {
  const { kind, sql } = CHANGES[number % CHANGES.length];
  await client.query(sql, [number]);
  return kind;
}

const AN_ORDER = 'SELECT id FROM orders OFFSET ($1::int * 37) % (SELECT count(*)::int FROM orders) LIMIT 1';

const PLACE_ORDER = {
  kind: 'inserts',
  sql: `INSERT INTO orders (customer_id, sku, quantity, total, placed_at)
        SELECT (SELECT id FROM customers OFFSET $1::int % 1000 LIMIT 1), sku, 2, price * 2, clock_timestamp()
        FROM products OFFSET $1::int % 300 LIMIT 1`,
};
const CHANGE_ORDER = {
  kind: 'updates',
  sql: `UPDATE orders SET quantity = quantity + 1, note = 'changed by step ' || $1::int WHERE id = (${AN_ORDER})`,
};
const CHANGE_PROFILE = {
  kind: 'updates',
  sql: `UPDATE customers SET profile = profile || jsonb_build_object('visit', $1::int)
        WHERE id = (SELECT id FROM customers OFFSET $1::int % 1000 LIMIT 1)`,
};
const CANCEL_ORDER = { kind: 'deletes', sql: `DELETE FROM orders WHERE id = (${AN_ORDER})` };
const RENUMBER_ORDER = {
  kind: 'changes of a key',
  sql: `UPDATE orders SET id = 1000000 + $1::int + (SELECT max(id) FROM orders) WHERE id = (${AN_ORDER})`,
};
const RENAME_PRODUCT = {
  kind: 'changes of a key',
  sql: `UPDATE products SET sku = 'NEW-' || $1::int || '-' || left(md5(clock_timestamp()::text), 4)
        WHERE sku = (SELECT sku FROM products OFFSET $1::int % 300 LIMIT 1)`,
};

const CHANGES = [
  PLACE_ORDER,
  CHANGE_ORDER,
  PLACE_ORDER,
  CHANGE_PROFILE,
  CANCEL_ORDER,
  PLACE_ORDER,
  CHANGE_ORDER,
  RENUMBER_ORDER,
  CANCEL_ORDER,
  RENAME_PRODUCT,
];
