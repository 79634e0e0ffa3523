package dev.parley.transport.openfeign;

import dev.parley.spi.records.Entries;
import dev.parley.spi.records.Entry;
import dev.parley.spi.records.EntryId;
import dev.parley.spi.records.PhotoName;
import dev.parley.spi.records.StoredPhoto;
import feign.Request;
import org.springframework.cloud.openfeign.FeignClient;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;

/** The contract {@code records} as Feign calls it. */
@FeignClient(name = "records", path = "/records")
interface RecordsClient {
    @GetMapping("/all")
    Entries all(Request.Options timeouts);

    @PostMapping("/add")
    Entry add(@RequestBody Entry request, Request.Options timeouts);

    @PostMapping("/edit")
    Entry edit(@RequestBody Entry request, Request.Options timeouts);

    @PostMapping("/delete")
    EntryId delete(@RequestBody EntryId request, Request.Options timeouts);

    @PostMapping(path = "/upload", consumes = MediaType.APPLICATION_OCTET_STREAM_VALUE)
    StoredPhoto upload(@RequestParam("name") String name, @RequestBody byte[] content, Request.Options timeouts);

    @PostMapping("/download")
    ResponseEntity<byte[]> download(@RequestBody PhotoName request, Request.Options timeouts);
}
