export function BatchingView() {
  return <p class="empty">soon</p>;
}
