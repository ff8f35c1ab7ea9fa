// A problem in words, with a button that tries the same again.
import type { Problem } from "./problems";

export function ProblemBox({ problem, onRetry }: { problem: Problem | null; onRetry?: (() => void) | undefined }) {
  return (
    <div class="error" role="alert">
      {problem ? (
        <>
          <p>
            <b>{problem.text}</b> {problem.step}
          </p>
          {problem.detail ? <p class="faint">The server says: {problem.detail}</p> : null}
          {problem.retry && onRetry ? (
            <button type="button" class="plain framed" onClick={onRetry}>
              Try again
            </button>
          ) : null}
        </>
      ) : null}
    </div>
  );
}
