// The title of the document that a tab shows.

/* Of the main world, in the session that most operations use: it comes after all that was sent there before. '' where
 * the document goes away meanwhile. */
export const askTitle = ({ cdp }) =>
  cdp.send('Runtime.evaluate', { expression: 'document.title', returnByValue: true })
    .then(({ result }) => String(result.value ?? ''), () => '');
