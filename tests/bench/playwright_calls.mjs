// What script/bench compares the browser with: the same calls in a plain Playwright script.
//   node playwright_calls.mjs LIBRARY EXECUTABLE URL COUNT
// Prints milliseconds as JSON: cold (from the start of node to the end of the first navigation), and the median of each call.
import { pathToFileURL } from 'node:url';

const [library, executablePath, url, count] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(`${library}/index.js`))).default;
const browser = await chromium.launch({ executablePath, headless: true, args: process.getuid() === 0 ? ['--no-sandbox'] : [] });
const page = await (await browser.newContext()).newPage();
await page.goto(url);
const cold = performance.now();

const calls = {
  navigate: () => page.goto(url),
  screenshot: () => page.screenshot(),
  content: () => page.content(),
  evaluate: () => page.evaluate('6 * 7'),
  click: () => page.click('button'),
  type: () => page.fill('input', 'some words'),
  pdf: () => page.pdf({ format: 'A4' }),
};
const medians = { cold };
for (const [name, call] of Object.entries(calls)) {
  const times = [];
  await call();
  for (let i = 0; i < Number(count); i++) {
    const begin = performance.now();
    await call();
    times.push(performance.now() - begin);
  }
  medians[name] = times.sort((a, b) => a - b)[times.length >> 1];
}
console.log(JSON.stringify(medians));
await browser.close();
