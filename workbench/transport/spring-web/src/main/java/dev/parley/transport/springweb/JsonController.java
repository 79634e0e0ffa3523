package dev.parley.transport.springweb;

import dev.parley.spi.Handler;
import dev.parley.spi.json.Json;
import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The contract {@code json} as routes. */
@RestController
@RequestMapping("/json")
class JsonController {
    private final Handler handler;

    JsonController(Handler handler) {
        this.handler = handler;
    }

    @GetMapping("/get")
    Nothing get() {
        return handler.handle(Json.GET, new Nothing());
    }

    @PostMapping("/post")
    Receipt post(@RequestBody Order request) {
        return handler.handle(Json.POST, request);
    }
}
