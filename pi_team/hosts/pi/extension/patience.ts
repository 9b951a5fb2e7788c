/** Waiting for something, but not for long. */

/** What comes of the work if it comes in time; a failure is nothing, unless it is to be told. */
export async function within<T>(patience: number, work: Promise<T> | undefined, failure?: "tell"): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, patience, undefined);
  });
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    if (failure === "tell") throw error;
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
