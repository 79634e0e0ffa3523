package dev.parley.transport.openfeign;

import dev.parley.spi.json.Nothing;
import dev.parley.spi.json.Order;
import dev.parley.spi.json.Receipt;
import feign.Request;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;

/** The contract {@code json} as Feign calls it. */
@FeignClient(name = "json", path = "/json")
interface JsonClient {
    @GetMapping("/get")
    Nothing get(Request.Options timeouts);

    @PostMapping("/post")
    Receipt post(@RequestBody Order request, Request.Options timeouts);
}
