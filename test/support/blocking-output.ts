// Owns: that a test process, which loads this before its tests, writes its results at once. With `--test-force-exit`, Node.js ends
// it without waiting for what a busy reader has not taken yet: tests would be missing.

interface Blockable {
  readonly _handle?: { setBlocking?(isBlocking: boolean): void };
}

(process.stdout as Blockable)._handle?.setBlocking?.(true);
