// Owns: the slash at the end of the page's address. Behind a proxy that removes a path from requests, the page may also be
// at the address without it, where a browser looks for all other files one folder too high.
// It is not a module, and its own URL is a query of the page's, which is the same file with the slash and without it.

if (!location.pathname.endsWith('/')) location.pathname += '/';
