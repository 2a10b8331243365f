// POST /browser/pdf: the page as it is printed.
import { Refusal, readError } from './failure.mjs';
import { hand } from './picture.mjs';

// What Chromium says of parameters: it alone knows how many pages there are, and what fits on them.
const FAULTS = [[/page range|exceeds page count/i, 'page_ranges'], [/margin|content area|printable area|paper|parse parameter value/i, 'margin']];

export async function pdf(tab, params, call) {
  const bytes = await tab.page.pdf({
    format: params.format ?? 'A4', landscape: params.landscape, scale: params.scale, margin: params.margin,
    pageRanges: params.page_ranges, printBackground: true,
  }).catch((error) => {
    const { sentence } = readError(error);
    const [, field] = FAULTS.find(([pattern]) => pattern.test(sentence)) ?? [];
    if (field) throw new Refusal('invalid_request', `${field} is not understood: ${sentence.replace(/^Protocol error \(\S+\): /, '')}`, field);
    throw error;
  });
  return { ...await hand(bytes, 'application/pdf', call, 'the document', 'take fewer pages'), clipped: false };
}
