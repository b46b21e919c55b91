import { expect, test } from 'vitest';
import { Tickets } from '../../../../../sdk/typescript/flight/tickets.ts';

test('a ticket may be used many times until it is released', () => {
  const tickets = new Tickets<string>();
  const released: string[] = [];
  const ticket = tickets.issue('orders', () => released.push('orders'));

  expect([tickets.use(ticket), tickets.use(ticket)]).toEqual(['orders', 'orders']);
  expect(tickets.release(ticket)).toBe(true);
  expect(released).toEqual(['orders']);
  expect(() => tickets.use(ticket)).toThrow(expect.objectContaining({ code: 'table-not-found' }));
});

test('a ticket that was never issued is refused, and releasing it says so', () => {
  const tickets = new Tickets<string>();

  expect(() => tickets.use(Uint8Array.of(1))).toThrow('this ticket is not of this process');
  expect(tickets.release(Uint8Array.of(1))).toBe(false);
});

test('when there are very many the oldest goes, and what it held is released', () => {
  const tickets = new Tickets<number>();
  const released: number[] = [];
  const issued = Array.from({ length: 4097 }, (_, n) => tickets.issue(n, () => released.push(n)));

  expect(released).toEqual([0]);
  expect(() => tickets.use(issued[0]!)).toThrow();
  expect(tickets.use(issued[1]!)).toBe(1);
});
