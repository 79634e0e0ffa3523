package dev.parley.transport.springweb;

import dev.parley.spi.Handler;
import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.Messages;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The contract {@code messages} as routes. */
@RestController
@RequestMapping("/messages")
class MessagesController {
    private final Handler handler;

    MessagesController(Handler handler) {
        this.handler = handler;
    }

    @PostMapping("/onlyText")
    TestModelOnlyText onlyText(@RequestBody TestModelOnlyText request) {
        return handler.handle(Messages.ONLY_TEXT, request);
    }

    @PostMapping("/allTypes")
    TestModelAllTypesList allTypes(@RequestBody TestModelAllTypesList request) {
        return handler.handle(Messages.ALL_TYPES, request);
    }

    @PostMapping("/gatherText")
    GatheredText gatherText(@RequestBody TestModelOnlyText request) {
        return handler.handle(Messages.GATHER_TEXT, request);
    }

    @PostMapping("/gatherTypes")
    GatheredTypes gatherTypes(@RequestBody TestModelAllTypesList request) {
        return handler.handle(Messages.GATHER_TYPES, request);
    }
}
