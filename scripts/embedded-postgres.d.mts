export type PostgresVersion = 15 | 18;

export interface PostgresOptions {
  /** Major version; 18 when not given. */
  readonly version?: PostgresVersion;
  /** Where the server keeps its data, made when missing and kept by `close()`. Not given: a temporary folder. */
  readonly folder?: string;
  /** A free one when not given. */
  readonly port?: number;
  /** Server settings on top of logical replication, such as `{ wal_sender_timeout: '2s' }`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Password of the user `postgres`: every connection must then give it (SCRAM-SHA-256). Not given: everyone is trusted. */
  readonly password?: string;
  /** PEM texts of the server's own certificate and key: TLS is then offered. */
  readonly tls?: { readonly certificate: string; readonly key: string };
}

/** What is needed to connect; plain data, so that it can go to another process. */
export interface PostgresAddress {
  readonly version: PostgresVersion;
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password?: string;
}

export interface PostgresServer extends PostgresAddress {
  /** Holds the data (`db`) and `postgres.log`. */
  readonly folder: string;
  /** Of the process that listens; undefined while stopped. */
  readonly pid: number | undefined;
  /** Ends orderly, or at once when a replication connection keeps it from that for 10 s. The data stay. */
  stop(): Promise<void>;
  /** Ends at once, without a checkpoint, as a crash would. The data stay. */
  kill(): Promise<void>;
  /** Stops it if it runs, and starts it on the same port and data, with other settings on top when given. */
  restart(settings?: Readonly<Record<string, string | number>>): Promise<void>;
  /** Stops it and removes its temporary folder. */
  close(): Promise<void>;
}

/** Why no server can be had on this kind of machine, or undefined when one can. */
export function postgresUnavailable(): string | undefined;

/**
 * Starts a real PostgreSQL on 127.0.0.1, fetched on first use, and resolves when it accepts connections.
 * The server ends with this process, however that ends. Rejects with the last lines of the server's log.
 */
export function startPostgres(options?: PostgresOptions): Promise<PostgresServer>;

/** `postgresql://…` for a database of the server; `postgres` when not given. */
export function postgresUri(address: PostgresAddress, database?: string): string;
