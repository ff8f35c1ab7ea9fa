// Icons as paths, so that none is fetched.
const PATHS = {
  play: "M7 4.5v15l12-7.5z",
  pause: "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z",
  wait: "M12 3a9 9 0 1 0 9 9h-2.500A6.500 6.500 0 1 1 12 5.500z",
  stop: "M6.5 6.5h11v11h-11z",
  plus: "M11 5h2v6h6v2h-6v6h-2v-6H5v-2h6z",
  cross: "M6.4 5 12 10.6 17.6 5 19 6.4 13.4 12l5.6 5.6-1.4 1.4-5.6-5.6L6.4 19 5 17.6l5.6-5.6L5 6.4z",
  key: "M14.5 3a6.5 6.5 0 0 0-6.2 8.4L3 16.7V21h4.3v-2.5h2.5V16h2.4l.4-.4A6.5 6.5 0 1 0 14.500 3zm2 6.500a2 2 0 1 1 0-4 2 2 0 0 1 0 4z",
  sun: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10zM11 1h2v4h-2zm0 18h2v4h-2zM1 11h4v2H1zm18 0h4v2h-4zM4.200 5.600l1.400-1.400 2.800 2.800-1.400 1.400zm11.400 11.400 1.400-1.400 2.800 2.800-1.400 1.400zM4.200 18.400l2.800-2.800 1.400 1.400-2.800 2.800zM15.600 7l2.800-2.800 1.400 1.400-2.800 2.800z",
  moon: "M20.500 14.500A8.500 8.500 0 0 1 9.500 3.500a8.500 8.500 0 1 0 11 11z",
  save: "M11 3h2v9.200l3.300-3.300 1.400 1.400L12 16l-5.700-5.700 1.400-1.400 3.300 3.300zM4 18h16v2H4z",
  search: "M10.500 4a6.500 6.500 0 0 1 5.200 10.400l4.700 4.700-1.400 1.400-4.700-4.700A6.500 6.500 0 1 1 10.500 4zm0 2a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z",
  bin: "M9 3h6v2h5v2H4V5h5zM6 9h12l-1 12H7zm3.500 2v8h1.500v-8zm3.500 0v8h1.500v-8z",
  copy: "M8 3h12v14h-3v4H4V7h4zm2 2v2h7v8h1V5zM6 9v10h9V9z",
};

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="currentColor" fill-rule="evenodd" />
    </svg>
  );
}
