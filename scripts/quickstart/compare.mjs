/** Number and content of every table on both sides. A table that is not there yet has no rows. */
export async function compareTables(source, destination, tables) {
  const compared = [];
  for (const table of tables) {
    const [at, to] = await Promise.all([contentOf(source, table), contentOf(destination, table)]);
    compared.push({ table, source: at, destination: to, equal: at.rows === to.rows && at.hash === to.hash });
  }
  return compared;
}

async function contentOf(client, table) {
  try {
    const { rows } = await client.query(`
      SELECT count(*)::int AS rows, md5(coalesce(string_agg(row_hash, '' ORDER BY row_hash), '')) AS hash
      FROM (SELECT md5(t::text) AS row_hash FROM public.${table} t) hashed`);
    return rows[0];
  } catch (error) {
    if (error.code === UNDEFINED_TABLE) return { rows: 0, hash: 'no table yet' };
    throw error;
  }
}

const UNDEFINED_TABLE = '42P01';

export function printComparison(tables) {
  const lines = [
    ['table', 'source', '', 'destination', '', ''],
    ...tables.map(({ table, source, destination, equal }) => [
      table,
      `${source.rows} rows`,
      source.hash.slice(0, 12),
      `${destination.rows} rows`,
      destination.hash.slice(0, 12),
      equal ? 'equal' : 'DIFFERENT',
    ]),
  ];
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  for (const line of lines) {
    const cells = line.map((cell, column) =>
      column === 1 || column === 3 ? cell.padStart(widths[column]) : cell.padEnd(widths[column]),
    );
    console.log(`   ${cells.join('  ').trimEnd()}`);
  }
}
