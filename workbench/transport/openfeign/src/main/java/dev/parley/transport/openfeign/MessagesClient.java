package dev.parley.transport.openfeign;

import dev.parley.spi.messages.GatheredText;
import dev.parley.spi.messages.GatheredTypes;
import dev.parley.spi.messages.TestModelAllTypesList;
import dev.parley.spi.messages.TestModelOnlyText;
import feign.Request;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/** The contract {@code messages} as Feign calls it. */
@FeignClient(name = "messages", path = "/messages")
interface MessagesClient {
    @PostMapping("/onlyText")
    TestModelOnlyText onlyText(@RequestBody TestModelOnlyText request, Request.Options timeouts);

    @PostMapping("/allTypes")
    TestModelAllTypesList allTypes(@RequestBody TestModelAllTypesList request, Request.Options timeouts);

    @PostMapping("/gatherText")
    GatheredText gatherText(@RequestBody TestModelOnlyText request, Request.Options timeouts);

    @PostMapping("/gatherTypes")
    GatheredTypes gatherTypes(@RequestBody TestModelAllTypesList request, Request.Options timeouts);
}
