// Prints what it hears on /chatter. Ends after three messages. The first argument is the
// path of the add-on (addon.c).
const pteros = require(process.argv[2]);
pteros.subscribe('chatter');
let left = 3;
const timer = setInterval(() => {
  for (let text = pteros.take(); text !== undefined && left > 0; text = pteros.take()) {
    console.log(`I heard: [${text}]`);
    left -= 1;
  }
  if (left === 0) {
    clearInterval(timer);
    pteros.end();
  }
}, 10);
