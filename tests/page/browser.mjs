// Starts Debian's Chromium with a fresh profile. `PAGE_MODULES` is a folder with `node_modules` of playwright-core and
// axe-core; `CHROMIUM` is another browser than /usr/bin/chromium.

import { createRequire } from 'node:module';
import { join } from 'node:path';

const from = process.env.PAGE_MODULES;
export const modules = createRequire(from ? join(from, 'package.json') : import.meta.url);

/** A page, and what went wrong in it: errors of scripts, refusals by the content security policy, dialogs. */
export async function open({ width = 1280, height = 800, scheme = 'light', motion = 'reduce' } = {}) {
  const { chromium } = modules('playwright-core');
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  const context = await browser.newContext({
    viewport: { width, height }, locale: 'en', colorScheme: scheme, reducedMotion: motion, acceptDownloads: true,
  });
  const page = await context.newPage();
  const wrong = [];
  page.on('pageerror', (error) => wrong.push(`a script failed: ${error.message}`));
  page.on('dialog', (dialog) => {
    wrong.push(`a dialog was opened: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on('console', (line) => {
    if (/Content Security Policy/i.test(line.text())) wrong.push(line.text());
  });
  return { browser, context, page, wrong, close: () => browser.close() };
}

/** Signs in with a code and waits until the page is live. */
export async function signIn(page, base, code, path = '/ui/') {
  await page.goto(`${base}${path}#code=${encodeURIComponent(code)}`);
  await live(page);
}

export const live = (page, timeout = 15000) => page.getByText('● live', { exact: true }).waitFor({ timeout });
