/** A pipeline file that explains itself. The server of the quickstart has no password, so the addresses may stand in it. */
export function pipelineFile({ source, sink }) {
  return `# yaml-language-server: $schema=../../contract/schemas/pipeline.schema.json
# Copies the tables of a shop into another database, and follows their changes.
# Check it:  npx urutau-host validate -f .urutau/quickstart/pipeline.yaml

# Owns the replication slot, the checkpoints in the destination and the folder of its state.
pipeline: quickstart

source:
  kind: postgres
  # Of your own database, keep the address out of the file: uri: \${env:SOURCE_URI}
  uri: ${source}
  # Made before the first row is read. It keeps the log from the last position that is stored in the destination.
  slotName: quickstart

sink:
  type: postgres
  uri: ${sink}
  # For targets that are written without a schema.
  namespace: public
  # A commit at whichever comes first. Short, so that you see changes at once; the default is 5s.
  flush: { rows: 100000, bytes: 32Mi, interval: 200ms }

# source: the table's full name there. target: its name in the destination, made when it is missing.
# writeMode upsert (the default) keeps one row per key; append keeps one row per change.
tables:
  - source: public.customers
    target: customers
  - source: public.products
    target: products
  - source: public.orders
    target: orders
`;
}
