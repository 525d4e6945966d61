import { defineConfig } from "vitest/config";

export default defineConfig({ test: { globalSetup: "./serve.mjs", testTimeout: 20_000 } });
