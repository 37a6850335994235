// Owns: what an honest client does while others misbehave.

import assert from 'node:assert/strict';
import type { Client } from './client.ts';

/** Creates, reads and removes a book. Each step must be answered as if there were no other clients. */
export async function beHonest({ client }: { readonly client: Client }): Promise<void> {
  const { id } = await client.create({ title: 'honest' });
  assert.equal((await client.request('GET', `/book/${id}`)).data.title, 'honest');
  assert.equal((await client.request('DELETE', `/book/${id}`)).status, 200);
}
